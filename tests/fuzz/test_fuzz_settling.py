"""What a mismatch is worth: planted faults are kept, what extreme values or tolerances bring about is not."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from library_of_controls import case, install

from truekernel.fuzz.libraries import load
from truekernel.fuzz.library import Ran
from truekernel.fuzz.oracles import closeness, torch_oracles
from truekernel.fuzz.oracles.moderating import moderate, pointwise
from truekernel.fuzz.records import Call, Operator, ParameterSpec, TensorValue, TestCase

ORACLES = {oracle.name: oracle for oracle in torch_oracles()}
LARGEST = torch.finfo(torch.float32).max
STRIDED = {"layout": "strided"}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def judged(monkeypatch, oracle, name, value):
    library = install(monkeypatch)
    given = case(name, value)
    bound = library.bind(given.calls[0], (), ())
    ran = Ran(given, (bound.operator,), (bound(),), 0.0)
    return ORACLES[oracle].judge(ran) if ORACLES[oracle].applies(given, (bound.operator,)) else None


def kind_of(outcome):
    return (outcome.kind, outcome.oracle) if outcome is not None else None


OVERFLOWING = TensorValue((3,), data=(LARGEST, LARGEST, float("-inf")), **STRIDED)
LARGE = TensorValue((4,), data=(1e20, -1e21, 1.0, 2.0), **STRIDED)
NOT_FINITE = TensorValue((4,), data=(float("inf"), 1.0, float("nan"), 1e20), **STRIDED)


def test_what_only_an_overflow_brings_about_is_filed_as_extreme(monkeypatch):
    assert kind_of(judged(monkeypatch, "layout", "sums_in_its_own_order", OVERFLOWING)) == ("extreme", "layout")
    assert judged(monkeypatch, "layout", "sums_in_its_own_order", TensorValue((3,), **STRIDED)) is None


@pytest.mark.parametrize("values", ["normal", "mixed", "extreme", "nan", "infinite", "subnormal"])
def test_a_fault_at_moderate_values_is_a_mismatch_whatever_values_showed_it(monkeypatch, values):
    found = judged(monkeypatch, "layout", "faulty_sum", TensorValue((30,), values=values, seed=3, **STRIDED))
    assert found is None or kind_of(found) == ("mismatch", "layout")
    assert found is not None or values in ("mixed", "nan", "infinite", "extreme")


def test_element_by_element_there_is_no_order_to_choose(monkeypatch):
    found = judged(monkeypatch, "layout", "overflows_apart", LARGE)
    assert kind_of(found) == ("mismatch", "layout")
    assert kind_of(judged(monkeypatch, "layout", "overflows_apart", NOT_FINITE)) == ("mismatch", "layout")


def test_unwritten_memory_is_the_fault_that_is_named(monkeypatch):
    value = TensorValue((5,), **STRIDED)
    assert kind_of(judged(monkeypatch, "determinism", "scratch", value)) == ("mismatch", "determinism")
    assert judged(monkeypatch, "determinism", "filled_scratch", value) is None
    assert kind_of(judged(monkeypatch, "layout", "scratch_apart", value)) == ("mismatch", "determinism")


def test_judges_let_pass_what_a_script_lets_pass(monkeypatch):
    value = TensorValue((5,), values="tiny", dtype="float64", **STRIDED)
    assert judged(monkeypatch, "layout", "nearly", value) is None
    assert judged(monkeypatch, "precision", "imprecise", TensorValue((5,))) is not None
    one = torch.tensor([1.0, float("nan")])
    for other in (one + 1e-6, one + 1e-4):
        try:
            exec(closeness.assertion("other", "one"), {"torch": torch, "one": one, "other": other})
            passed = True
        except AssertionError:
            passed = False
        assert passed == closeness.close(one, other)


@pytest.mark.parametrize("oracle", ["layout", "precision", "batching", "in_place", "out", "compile", "determinism"])
def test_scripts_state_no_tolerance_of_their_own(oracle):
    given = TestCase("torch", (Call("torch.add", (TensorValue((2,)), TensorValue((2,)))),))
    assert not any("rtol" in line or "atol" in line for line in ORACLES[oracle].script(given))


def test_statistics_of_half_inputs_may_have_another_dtype_and_nothing_else_may(monkeypatch):
    half = TensorValue((3, 4), "bfloat16")
    assert judged(monkeypatch, "metadata", "statistics", half) is None
    assert kind_of(judged(monkeypatch, "metadata", "faulty_statistics", half)) == ("mismatch", "metadata")
    assert kind_of(judged(monkeypatch, "metadata", "faulty_first", half)) == ("mismatch", "metadata")


def test_whole_numbers_that_are_mixed_are_measured_in_the_dtype_of_the_result(monkeypatch):
    operator = next(one for one in load("torch").operators() if one.name == "torch.fft.fft2")
    data = tuple(bool(place % 3) for place in range(42))
    given = TestCase("torch", (Call(operator.name, (TensorValue((6, 7), "bool", "transposed", data=data),)),))
    ran = Ran(given, (operator,), (), 0.0)
    assert ORACLES["layout"].judge(ran) is None
    wrong = judged(monkeypatch, "layout", "faulty_transform", TensorValue((9,), "int64", **STRIDED))
    assert kind_of(wrong) == ("mismatch", "layout")


def test_the_factors_of_a_decomposition_have_no_one_derivative():
    operators = {one.name: one for one in load("torch").operators()}
    for name, asked in (("torch.linalg.svd", False), ("torch.linalg.svdvals", True), ("torch.linalg.qr", False)):
        given = TestCase("torch", (Call(name, (TensorValue((3, 2)),)),))
        assert ORACLES["gradient"].applies(given, (operators[name],)) == asked
    half = TestCase("torch", (Call("torch.linalg.svdvals", (TensorValue((3, 2), "bfloat16"),)),))
    assert not ORACLES["gradient"].applies(half, (operators["torch.linalg.svdvals"],))


def test_moderate_values_keep_what_is_moderate():
    operator = Operator(
        "torch.f",
        "reduction",
        (ParameterSpec("x", "tensor"), ParameterSpec("p", "real"), ParameterSpec("dim", "integer")),
    )
    plain = Call("torch.f", (TensorValue((3,)), 2, 1000))
    assert moderate(plain, operator) is plain
    data = (float("nan"), float("-inf"), 1e-30, 3e38, 0.25, 0.0)
    tame = moderate(Call("torch.f", (TensorValue((6,), data=data), -256, 1000)), operator)
    value = tame.arguments[0]
    assert tame.arguments[1:] == (-3, 1000)
    assert value.data[4:] == (0.25, 0.0)
    assert value.data[1] < 0
    assert all(abs(part) == 0.0 or 0.25 <= abs(part) <= 2.0 for part in value.data)


def test_what_works_element_by_element_is_told_by_its_tag():
    operators = {one.name: one for one in load("torch").operators()}
    names = ("torch.remainder", "torch.special.erf", "torch.Tensor.mul", "torch.norm", "torch.conv2d", "torch.fft.fft2")
    assert [pointwise(operators[name]) for name in names] == [True, True, True, False, False, False]
