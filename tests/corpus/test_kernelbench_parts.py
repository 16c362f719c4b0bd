"""Constants of a problem file, and expressions fitted to lengths."""

import pytest

from truekernel.corpus.kernelbench.fitting import expression
from truekernel.corpus.kernelbench.module_text import NotAProblemError, changed_text, namespace, whole_constants
from truekernel.model.lengths import evaluate

TEXT = """
batch: int = 2 * 8
N, M = 4, 1 << 3
shape = (N, 7, True)
factor = 2.5
K = N + 1
N = 6
def get_inputs(): return [batch, N, M, K, shape]
def get_init_inputs(): return []
class Model: pass
"""


def test_whole_numbers_that_are_written_down():
    assert whole_constants(TEXT) == {"batch": 16, "M": 8, "shape_1": 7, "N": 6}


def test_changed_constants_carry_what_follows_from_them():
    assert namespace(TEXT, "x.py")["get_inputs"]() == [16, 6, 8, 5, (4, 7, True)]
    assert namespace(TEXT, "x.py", {"shape_1": 70, "batch": 1, "N": 9})["get_inputs"]() == [1, 9, 8, 5, (4, 70, True)]
    assert whole_constants(changed_text(TEXT, {"M": 3}))["M"] == 3


def test_missing_names():
    with pytest.raises(NotAProblemError, match="no get_inputs and no get_init_inputs"):
        namespace("class Model: pass", "x.py")


@pytest.mark.parametrize(
    "rule",
    [
        "a",
        "3 * a",
        "a - 2",
        "2 * a + 7",
        "(a + 1) // 4 - 1",
        "a // 11",
        "a * b",
        "6 * a * b",
        "a - b + 1",
        "2 * a + 3 * b - 4",
    ],
)
def test_lengths_are_fitted_by_expressions_that_give_them(rule):
    official = {"a": 48, "b": 5}
    movers = {}
    for name in ("a", "b"):
        if name in rule:
            values = [official[name], *(official[name] + d for d in (1, 2, 3, -3, 48, 13))]
            movers[name] = [(v, int(evaluate(rule, {**official, name: v}))) for v in values]
    found = expression(int(evaluate(rule, official)), movers)
    for a, b in ((48, 5), (17, 5), (48, 9), (31, 3)):
        assert evaluate(str(found), {"a": a, "b": b}) == evaluate(rule, {"a": a, "b": b})


def test_a_length_without_a_simple_rule_has_none():
    assert expression(48, {"a": [(48, 48), (49, 50), (50, 3)]}) is None
    assert expression(48, {}) == 48
