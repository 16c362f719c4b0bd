"""Judging and references on a GPU."""

import math

import pytest
import torch
from device_examples import DTYPES, INCOMPARABLE, STYLES, TOLERANCES, example, index_example

from truekernel.cases import make_inputs, shapes
from truekernel.corpus import problems
from truekernel.model import Case
from truekernel.numerics import expect, statistic_names
from truekernel.numerics.digest import digest
from truekernel.numerics.statistics import RHO_LADDER, statistics
from truekernel.numerics.tensor_judging import judge_in_parts, judge_tensors

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def judge():
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    from truekernel.numerics.cuda_core import CudaCore
    from truekernel.numerics.device import DeviceJudge, source

    return DeviceJudge(CudaCore(source))


def on_device(want):
    import dataclasses

    tensors = {key: getattr(want, key) for key in ("published", "truth", "scale", "spread", "ties")}
    return dataclasses.replace(want, **{key: t.cuda() for key, t in tensors.items() if t is not None})


def assert_agree(found, wanted, elements):
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        if name == "rms":
            assert found[name] == pytest.approx(value, rel=1e-12)
        elif name == "bias":
            assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-9 * math.sqrt(elements))
        else:
            assert found[name] == value, name


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_statistics_and_digest_agree_with_the_cpu(judge, dtype, style):
    for count in (1, 17, 100_003):
        output, want = example(count, dtype, count, style)
        for tolerances in (TOLERANCES, INCOMPARABLE):
            wanted = statistics([output], [want], "poison", tolerances)
            found, code = judge_tensors(judge, [output.cuda()], [on_device(want)], "poison", tolerances)
            assert_agree(found, wanted, count)
            assert code == digest([output])
            again, _ = judge_tensors(judge, [output.cuda()], [on_device(want)], "poison", tolerances)
            assert again == found


def test_index_outputs_agree_with_the_cpu(judge):
    output, want = index_example(1, 5000, 13)
    wanted = statistics([output], [want], "poison", TOLERANCES)
    found, code = judge_tensors(judge, [output.cuda()], [on_device(want)], "poison", TOLERANCES)
    assert_agree(found, wanted, 5000)
    assert code == digest([output])


@pytest.mark.parametrize("name", sorted(problems()))
def test_references_on_the_device_are_those_of_the_cpu(judge, name):
    problem = problems()[name]
    axes = shapes(problem)[-1]
    case = Case.of(name, axes, "normal", 1)
    here = expect(problem, make_inputs(problem, case), axes)
    there = expect(problem, make_inputs(problem, case, "cuda"), axes)
    for want, found in zip(here, there, strict=True):
        assert found.truth.is_cuda
        assert found.published.dtype == want.published.dtype
        if not want.elements:
            continue
        torch.testing.assert_close(found.truth.cpu(), want.truth, rtol=1e-9, atol=1e-300, equal_nan=True)
        assert (found.scale.cpu() > 0).eq(want.scale > 0).double().mean() > 0.99
        both = (found.scale.cpu() > 0) & (want.scale > 0)
        if both.any():
            assert (found.scale.cpu()[both] / want.scale[both]).log().abs().median() < 0.2
    honest = [want.published for want in here]
    found, _ = judge_tensors(judge, [t.cuda() for t in honest], there, "stale", TOLERANCES)
    wanted = statistics(honest, here, "stale", TOLERANCES)
    assert found["elements"] == wanted["elements"]
    assert found["worst"] == pytest.approx(wanted["worst"], rel=0.5)


def test_parts_give_what_the_whole_gives(judge):
    problem = problems()["softmax"]
    axes = {"rows": 100, "features": 4096}
    inputs = make_inputs(problem, Case.of("softmax", axes, "normal", 1), "cuda")
    wants = expect(problem, inputs, axes)
    output = wants[0].published * (1 + 1e-6)
    whole, code = judge_tensors(judge, [output], wants, "poison", TOLERANCES)
    values, parts_code = judge_in_parts(
        judge, problem, inputs, axes, [output], "poison", TOLERANCES, axis="rows", rows=32
    )
    parts = dict(zip(statistic_names(TOLERANCES, RHO_LADDER), values, strict=True))
    assert parts_code == code
    for name in ("unwritten", "elements", "nonfinite", "precision", "flat"):
        assert parts[name] == pytest.approx(whole[name], rel=1e-2)
    assert parts["worst"] == pytest.approx(whole["worst"], rel=0.5)
