"""Calls that break a documented precondition which torch does not check, each beside a lawful one."""

import pytest

from truekernel.fuzz.libraries import load
from truekernel.fuzz.libraries.torch_contracts import violation
from truekernel.fuzz.oracles import torch_oracles
from truekernel.fuzz.records import Call, TensorValue, TestCase

OPERATORS = {operator.name: operator for operator in load("torch").operators()}
ORACLES = {oracle.name: oracle for oracle in torch_oracles()}


def f(*shape, **more):
    return TensorValue(shape, **more)


def whole(*data, shape=None, dtype="int64"):
    return TensorValue(shape or (len(data),), dtype, data=data)


def lstm(weight=(16, 3), hidden=4, biases=True, rank=3):
    state = f(1, 2, hidden)
    weights = (f(*weight), f(4 * hidden, hidden), *((f(4 * hidden), f(4 * hidden)) if biases else ()))
    return (f(*(5, 2, 3)[3 - rank :]), (state, state), weights, True, 1, 0.0, False, False, False)


def cell(weight=(12, 3)):
    return (f(2, 3), f(2, 4), f(*weight), f(12, 4), f(12), f(12))


def grid(interpolation=0, padding=0):
    return (f(1, 1, 2, 2), f(1, 1, 1, 2), interpolation, padding, False)


def ctc(targets=(1, 2), lengths=(4,), wanted=(2,)):
    return (f(4, 1, 3), whole(*targets), whole(*lengths), whole(*wanted))


PAIRS = [
    ("torch.grid_sampler", grid(), grid(-1)),
    ("torch.grid_sampler_2d", grid(2, 2), grid(0, 3)),
    ("torch.nn.functional.embedding_bag", (whole(0, 1, 1), f(2, 3), whole(0, 2)), (whole(0, 1, 1), f(2, 3), whole(0, 2, 1))),
    ("torch.nn.functional.embedding_bag", (whole(0, 1, 1), f(2, 3), whole(0, 0)), (whole(0, 1, 1), f(2, 3), whole(1, 2))),
    ("torch.embedding_bag", (f(2, 3), whole(0, 1), whole(0)), (f(2, 3), whole(0, 1, shape=(1, 2)), whole(0))),
    ("torch.lstm", lstm(), lstm(weight=(16, 5))),
    ("torch.lstm", lstm(), lstm(biases=False)),
    ("torch.lstm", lstm(), lstm(rank=2)),
    ("torch.gru_cell", cell(), cell((3, 12))),
    ("torch.searchsorted", (TensorValue((3,), data=(1.0, 2.0, 2.0)), f(2)), (TensorValue((3,), data=(1.0, 3.0, 2.0)), f(2))),
    ("torch.bucketize", (f(2), TensorValue((2,), data=(1.0, 2.0))), (f(2), TensorValue((2,), data=(1.0, float("nan"))))),
    ("torch.nn.functional.ctc_loss", ctc(), ctc(targets=(1, 3))),
    ("torch.nn.functional.ctc_loss", ctc(), ctc(lengths=(5,))),
    ("torch.nn.functional.ctc_loss", ctc(), ctc(wanted=(3,))),
    ("torch.native_group_norm", (f(2, 4), f(4), f(4), 2, 4, 1, 2, 0.1), (f(2, 4), f(4), f(4), 2, 4, 2, 2, 0.1)),
    ("torch.native_batch_norm", (f(2, 3), f(3), f(3), f(3), f(3), False, 0.1, 0.1), (f(2, 3), f(2), f(3), f(3), f(3), False, 0.1, 0.1)),
    ("torch.native_batch_norm", (f(2, 3), None, None, None, None, True, 0.1, 0.1), (f(2, 3), None, None, None, None, False, 0.1, 0.1)),
    ("torch.scatter", (f(3), 0, whole(0, 2), f(2)), (f(3), 0, whole(2, 2), f(2))),
    ("torch.index_copy", (f(3, 2), 0, whole(0, 2), f(2, 2)), (f(3, 2), 0, whole(1, 1), f(2, 2))),
    ("torch.index_put", (f(3), (whole(0, 2),), f(2)), (f(3), (whole(0, 0),), f(2))),
    ("torch.nn.functional.max_unpool2d", (f(1, 1, 2), whole(0, 3, shape=(1, 1, 2)), (1, 2)), (f(1, 1, 2), whole(3, 3, shape=(1, 1, 2)), (1, 2))),
    ("torch.linalg.lu_solve", (f(2, 2), whole(1, 2, dtype="int32"), f(2, 1)), (f(2, 2), whole(0, 2, dtype="int32"), f(2, 1))),
    ("torch.choose_qparams_optimized", (f(4), 4, 200, 0.16, 8), (f(4), 5, 200, 0.16, 8)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "lawful", "unlawful"), PAIRS)
def test_a_broken_precondition_is_seen(name, lawful, unlawful):
    assert violation(Call(name, lawful), OPERATORS[name]) == ""
    assert violation(Call(name, unlawful), OPERATORS[name]) != ""


def test_keywords_count_as_arguments():
    name, said = "torch.linalg.pinv", (("hermitian", True),)
    assert violation(Call(name, (f(3, 3, values="symmetric"),), said), OPERATORS[name]) == ""
    assert violation(Call(name, (f(3, 3),)), OPERATORS[name]) == ""
    assert violation(Call(name, (f(3, 3),), said), OPERATORS[name]) != ""
    name = "torch.isin"
    unique, repeated = (Call(name, (whole(*data), whole(1)), (("assume_unique", True),)) for data in ((0, 1), (1, 1)))
    assert violation(unique, OPERATORS[name]) == ""
    assert violation(repeated, OPERATORS[name]) != ""
    summed = Call("torch.index_put", (f(3), (whole(0, 0),), f(2)), (("accumulate", True),))
    assert violation(summed, OPERATORS["torch.index_put"]) == ""


def test_judges_are_asked_about_lawful_calls_and_the_one_of_memory_about_all():
    for arguments, asked in ((grid(), True), (grid(-1), False)):
        case = TestCase("torch", (Call("torch.grid_sampler", arguments),))
        given = (case, (OPERATORS["torch.grid_sampler"],))
        assert [ORACLES[name].applies(*given) for name in ("layout", "precision", "determinism")] == [asked] * 3
        assert ORACLES["neighbours"].applies(*given)


def test_samples_of_torch_itself_break_none_that_shapes_and_modes_decide():
    # Samples keep the recipe of float values and of many whole ones, so that order and repetition are not theirs.
    library, lost = load("torch"), ("sorted", "more than once", "blank")
    broken = {
        f"{name}: {said}"
        for name, calls in library.samples().items()
        if name.startswith("torch.nn.functional.")
        for call in calls
        if (said := violation(call, OPERATORS[name])) and not any(word in said for word in lost)
    }
    assert not broken
