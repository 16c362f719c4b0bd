"""Nothing behind a reference pins the CPU, and references computed in parts are those of the whole."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from truekernel.cases import make_inputs
from truekernel.corpus import problems
from truekernel.errors import BadInputError
from truekernel.model import Case, OutputSpec
from truekernel.numerics import expect
from truekernel.numerics.formats import FORMATS, power_of_two, spacing, ulp
from truekernel.numerics.reference import widen
from truekernel.numerics.tensor_judging import device_output, expect_in_parts

UNTRACEABLE = {"bincount"}
"""Needs values, not shapes alone."""


def inputs_of(problem, recipe="official", **axes):
    lengths = {**problem.audit_axes(), **axes}
    return make_inputs(problem, Case.of(problem.name, lengths, recipe, 1)), lengths


@pytest.mark.parametrize("name", sorted(set(problems()) - UNTRACEABLE))
def test_references_stay_on_the_device_of_their_inputs(name):
    """Tensors without memory stand for another device: operators refuse to mix them with the CPU's."""
    problem = problems()[name]
    inputs, axes = inputs_of(problem)
    elsewhere = {key: tensor.to("meta") for key, tensor in inputs.items()}
    for function in (problem.reference, problem.error_scale):
        for tensors in (elsewhere, widen(elsewhere)):
            if function is not None:
                assert {output.device.type for output in function(tensors, axes)} == {"meta"}
    if problem.ties is not None:
        assert problem.ties(widen(elsewhere), axes).device.type == "meta"


def test_a_pinned_reference_would_be_seen():
    with pytest.raises(RuntimeError, match="device"):
        torch.zeros(3, device="meta") + torch.ones(3)


@pytest.mark.parametrize("dtype", [*FORMATS, "int32"])
def test_spacing_is_ulp(dtype):
    @given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
    def check(values):
        array = np.array([*values, 0.0, -0.0, 5e-324, 1e-310, 2.0**-126, 65504.0])
        assert (spacing(torch.from_numpy(array), dtype).numpy() == ulp(array, dtype)).all()

    check()


def test_powers_of_two_are_exact():
    exponents = torch.arange(-1074, 1024)
    assert power_of_two(exponents).tolist() == [math.ldexp(1.0, k) for k in exponents.tolist()]


@pytest.mark.parametrize("name", ["softmax", "row_variance", "top1_gate", "matmul_half"])
def test_parts_are_those_of_the_whole(name):
    problem = problems().get(name)
    if problem is None:
        pytest.skip("not in the corpus")
    axis = next(iter(problem.axes))
    small = {axis: 37} | ({"features": 257} if name == "softmax" else {})
    inputs, axes = inputs_of(problem, "heavy", **small)
    whole = expect(problem, inputs, axes, runs=2)
    parts = list(expect_in_parts(problem, inputs, axes, axis=axis, rows=16, runs=2))
    assert [part[0].shape[0] for part in parts] == [16, 16, 5]
    for number, want in enumerate(whole):
        pieces = [part[number] for part in parts]
        torch.testing.assert_close(torch.cat([p.truth for p in pieces]), want.truth, rtol=1e-12, atol=0, equal_nan=True)
        torch.testing.assert_close(torch.cat([p.published for p in pieces]), want.published, rtol=1e-5, atol=1e-6)
        ratio = torch.cat([p.scale for p in pieces]) / want.scale
        assert ratio.nan_to_num(1.0).log().mean().abs() < 0.5
        if want.ties is not None:
            assert torch.equal(torch.cat([p.ties for p in pieces]), want.ties)


def test_published_values_alone_cost_no_truth():
    problem = problems()["softmax"]
    inputs, axes = inputs_of(problem, rows=20, features=64)
    parts = list(expect_in_parts(problem, inputs, axes, axis="rows", rows=16, full=False))
    assert torch.equal(torch.cat([part[0].published for part in parts]), expect(problem, inputs, axes)[0].published)
    assert {part[0].truth.stride() for part in parts} == {(0, 0)}


def test_what_can_not_be_cut_is_refused():
    problem = problems()["softmax"]
    inputs, axes = inputs_of(problem, rows=20, features=64)
    with pytest.raises(BadInputError, match="does not lead every output"):
        list(expect_in_parts(problem, inputs, axes, axis="features", rows=16))
    with pytest.raises(BadInputError, match="a multiple of 16"):
        list(expect_in_parts(problem, inputs, axes, axis="rows", rows=10))


def test_strided_tensors_have_no_single_address():
    problem = problems()["softmax"]
    inputs, axes = inputs_of(problem, rows=20, features=64)
    (want,) = expect(problem, inputs, axes, runs=1)
    assert isinstance(problem.outputs[0], OutputSpec)
    with pytest.raises(ValueError, match="contiguous"):
        device_output(torch.zeros(64, 20).t(), want)
