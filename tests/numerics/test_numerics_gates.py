import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from truekernel.model import AxisSpec, OutputSpec, Problem, TensorSpec
from truekernel.numerics import (
    TRIVIAL,
    expect,
    independent_axes,
    is_valid,
    lower_precision,
    official_slice,
    statistics,
    trivial_outputs,
)
from truekernel.numerics.gates import round_significand


def problem_of(function, outputs=("M", "N"), dtype="float32", kinds=("batch", "feature")):
    return Problem(
        name="p",
        family="elementwise",
        summary="",
        axes={"M": AxisSpec(4096, 8, kinds[0]), "N": AxisSpec(512, 6, kinds[1])},
        inputs=(TensorSpec("x", ("M", "N"), dtype),),
        outputs=(OutputSpec("y", outputs, dtype),),
        reference=lambda inputs, axes: (function(inputs["x"]),),
        flops=lambda a: 1.0,
        bytes=lambda a: 1.0,
    )


X = torch.randn(8, 6, generator=torch.Generator().manual_seed(1))
AXES = {"M": 8, "N": 6}


def test_trivial_outputs_have_the_right_form():
    want = expect(problem_of(lambda x: x * 2), {"x": X}, AXES)
    other = expect(problem_of(lambda x: x * 2), {"x": X + 1}, AXES)
    found = trivial_outputs(want, {"x": X}, other)
    assert tuple(found) == TRIVIAL
    assert all(o.shape == X.shape and o.dtype == torch.float32 for outputs in found.values() for o in outputs)
    assert torch.equal(found["input copy"][0], X)
    assert torch.equal(found["other case"][0], (X + 1) * 2)
    assert torch.allclose(found["mean"][0], ((X + 1) * 2).mean())
    assert torch.equal(found["first row"][0][5], want[0].published[0])


def test_trivial_outputs_that_make_no_sense_are_left_out():
    want = expect(problem_of(lambda x: x.sum(0, keepdim=True), (1, "N")), {"x": X}, AXES)
    assert set(trivial_outputs(want, {"x": X})) == {"zeros"}
    empty = expect(problem_of(lambda x: x[:0], (0, "N")), {"x": X}, AXES)
    assert trivial_outputs(empty, {"x": X}) == {}


def test_validity_wants_a_margin_of_two():
    assert is_valid([0.5, 0.1])
    assert not is_valid([0.51])
    assert is_valid([])


@given(st.floats(allow_nan=False, width=32))
def test_rounding_to_11_bits_is_that_of_float16_without_its_range(value):
    rounded = round_significand(torch.tensor([value], dtype=torch.float64), 11)
    if 2.0**-13 <= abs(value) <= 32000:
        assert rounded.item() == torch.tensor([value]).half().double().item()
    assert round_significand(rounded, 11).item() == rounded.item()


def test_the_next_lower_precision_is_far_from_float32_and_blind_on_whole_numbers():
    problem = problem_of(lambda x: x * 1.0)
    want = expect(problem, {"x": X}, AXES)
    assert statistics(lower_precision(problem, {"x": X}, AXES), want, "stale")["bound:0"] > 100
    whole = {"x": X.round()}
    assert statistics(lower_precision(problem, whole, AXES), expect(problem, whole, AXES), "stale")["bound:0"] == 0


@pytest.mark.parametrize(
    ("function", "outputs", "independent"),
    [
        (lambda x: x * 2, ("M", "N"), {"M", "N"}),
        (lambda x: torch.softmax(x, 1), ("M", "N"), {"M"}),
        (lambda x: x / x.norm(), ("M", "N"), set()),
        (lambda x: x.sum(1), ("M",), {"M"}),
        (lambda x: x.flip(0), ("M", "N"), {"N"}),
    ],
)
def test_independent_axes_are_found_by_cutting_them(function, outputs, independent):
    assert independent_axes(problem_of(function, outputs), {"x": X}, AXES) == independent


def test_an_official_slice_keeps_reduction_axes():
    problem = problem_of(lambda x: x * 2, kinds=("batch", "reduction"))
    cost = lambda axes: axes["M"] * axes["N"]  # noqa: E731
    assert official_slice(problem, {"M", "N"}, cost, 5000) == {"M": 8, "N": 512}
    assert official_slice(problem, {"M"}, cost, 10) == {"M": 1, "N": 512}
    assert official_slice(problem, (), cost, 10) == {"M": 4096, "N": 512}
