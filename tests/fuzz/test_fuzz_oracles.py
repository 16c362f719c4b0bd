"""Every judge sees its fault, and is silent about honest functions and about what it can't know."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from library_of_controls import case, install

from truekernel.fuzz.libraries import load
from truekernel.fuzz.library import Ran
from truekernel.fuzz.oracles import torch_oracles
from truekernel.fuzz.records import Call, TensorValue, TestCase

ORACLES = {oracle.name: oracle for oracle in torch_oracles()}
VECTOR = TensorValue((5,), seed=3)


def judged(monkeypatch, oracle, name, *values):
    library = install(monkeypatch)
    given = case(name, *values)
    bound = library.bind(given.calls[0], (), ())
    ran = Ran(given, (bound.operator,), (bound(),), 0.0)
    judge = ORACLES[oracle]
    return judge.judge(ran) if judge.applies(given, (bound.operator,)) else None


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


WRONG = [
    ("determinism", "counts", ()),
    ("determinism", "unwritten", ()),
    ("neighbours", "reads_beyond", ()),
    ("neighbours", "writes_beyond", ()),
    ("layout", "cares_for_layout", ()),
    ("precision", "imprecise", ()),
    ("precision", "loses_nan", (TensorValue((20,), values="nan"),)),
    ("out", "wrong_out", ()),
    ("in_place", "wrong_variant", ()),
    ("batching", "wrong_batch", ()),
    ("gradient", "wrong_gradient", (VECTOR,)),
    ("metadata", "wrong_meta", ()),
]


@pytest.mark.parametrize(("oracle", "name", "values"), WRONG)
def test_a_fault_is_seen(monkeypatch, oracle, name, values):
    # Memory that nobody writes holds the same by chance now and then: that control gets several tries.
    tries = (judged(monkeypatch, oracle, name, *values) for _ in range(8 if name == "unwritten" else 1))
    found = next((outcome for outcome in tries if outcome is not None), None)
    assert found is not None
    assert (found.kind, found.oracle) == ("mismatch", oracle)


@pytest.mark.parametrize("oracle", [name for name in ORACLES if name != "compile"])
@pytest.mark.parametrize("name", ["honest", "honest_sum", "honest_out"])
@pytest.mark.parametrize(
    "value",
    [
        VECTOR,
        TensorValue((3, 4), layout="transposed"),
        TensorValue((2, 3), "bfloat16"),
        TensorValue((4,), values="mixed"),
        TensorValue(()),
    ],
)
def test_honest_functions_are_left_alone(monkeypatch, oracle, name, value):
    if name == "honest_sum" and not value.shape:
        value = VECTOR
    assert judged(monkeypatch, oracle, name, value) is None


@pytest.mark.parametrize(("oracle", "name"), [("precision", "ill_posed"), ("gradient", "kink")])
def test_nothing_is_said_where_small_changes_decide(monkeypatch, oracle, name):
    values = TensorValue((50,), seed=11) if oracle == "precision" else TensorValue((5,), values="zeros")
    assert judged(monkeypatch, oracle, name, values) is None


def test_a_wrong_graph_is_seen(monkeypatch):
    from truekernel.fuzz.oracles import compiled

    monkeypatch.setattr(compiled, "BACKEND", "eager")
    assert judged(monkeypatch, "compile", "wrong_compiled").oracle == "compile"
    assert judged(monkeypatch, "compile", "honest") is None


@pytest.mark.parametrize(
    ("oracle", "name", "asked"),
    [
        ("precision", "torch.as_strided_scatter", False),
        ("precision", "torch.select_scatter", True),
        ("precision", "torch.as_strided", False),
        ("batching", "torch.as_strided", False),
        ("batching", "torch.select_scatter", True),
        ("in_place", "torch.Tensor.as_strided", False),
        ("in_place", "torch.Tensor.squeeze", True),
    ],
)
def test_operators_for_which_a_comparison_means_nothing_are_left_alone(oracle, name, asked):
    operator = next(operator for operator in load("torch").operators() if operator.name == name)
    given = TestCase("torch", (Call(name, (VECTOR, VECTOR)),))
    assert ORACLES[oracle].applies(given, (operator,)) == asked
