"""Every rule's examples are its tests: a positive one gives exactly the stated results, a negative one nothing."""

import pytest

from truekernel.mutation import Example, Rule, benign_rules, results, rules

ALL = {**rules(), **benign_rules()}
CASES = [
    pytest.param(rule, example, id=f"{name}-{number}")
    for name, rule in ALL.items()
    for number, example in enumerate(rule.examples)
]


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_example(rule: Rule, example: Example) -> None:
    before = example.program(example.before, rule.file)
    expected = [example.program(after, rule.file) for after in example.results]
    assert results(before, rule) == expected


@pytest.mark.parametrize("rule", ALL.values(), ids=ALL.keys())
def test_rule_is_complete(rule: Rule) -> None:
    assert any(example.results for example in rule.examples), "a positive example is missing"
    assert any(example.after is None for example in rule.examples), "a negative example is missing"
    assert rule.description.endswith(".") and "\n" not in rule.description
    assert rule.source
    assert rule.name == rule.name.lower() and " " not in rule.name
