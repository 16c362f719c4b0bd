import pytest

from truekernel import corpus
from truekernel.trial.honest import MOST_RULES, PANEL_LEAST, honest_variants, in_panel


def variants_of(problem):
    return honest_variants([p for p in corpus.programs().values() if p.problem == problem])


@pytest.mark.parametrize("problem", ["softmax", "layer_norm", "mse_loss"])
def test_panel_and_outer_set_do_not_meet(problem):
    variants = variants_of(problem)
    panel = [v for v in variants if v.role == "panel"]
    outer = [v for v in variants if v.role == "outer"]
    assert len(panel) >= PANEL_LEAST
    assert outer
    assert not {v.id for v in panel} & {v.id for v in outer}
    assert {v.program for v in panel} == {variants[0].program}


def test_other_programs_are_independent_and_never_set_spreads():
    variants = variants_of("softmax")
    second = [v for v in variants if v.program != variants[0].program]
    assert second
    assert all(v.independent and v.role == "outer" for v in second)


def test_each_rule_once_and_the_same_every_time():
    variants = variants_of("layer_norm")
    rules = [(v.program, v.rule) for v in variants]
    assert len(rules) == len(set(rules))
    assert all(sum(v.program == name for v in variants) <= MOST_RULES + 1 for name in {v.program for v in variants})
    assert variants == variants_of("layer_norm")


def test_half_of_the_benign_rules_set_spreads():
    from truekernel.mutation import benign_rules

    chosen = [in_panel(rule) for rule in benign_rules()]
    assert 0.25 < sum(chosen) / len(chosen) < 0.75
