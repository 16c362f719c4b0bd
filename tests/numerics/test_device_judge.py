"""The statistics kernels, run on the CPU backend, agree with the Python text."""

import dataclasses
import itertools
import math
import re

import pytest
import torch
from device_examples import DTYPES, INCOMPARABLE, STYLES, TOLERANCES, example, index_example
from simt_machine import SimtMachine

from truekernel.execution import simt
from truekernel.model import ITEM_BYTES
from truekernel.numerics import device as judging
from truekernel.numerics.device import DeviceJudge, DeviceOutput, judge_kernel, source
from truekernel.numerics.digest import digest
from truekernel.numerics.formats import FORMATS
from truekernel.numerics.names import RHO_LADDER
from truekernel.numerics.statistics import statistics

pytestmark = pytest.mark.skipif(not simt.find_compilers(), reason="no C++ compiler")
COUNT = 1203
PLAIN_KERNELS = [judging.COMBINE, judging.DIGEST]


def kernels(dtype):
    forms = [(True, True), (True, False), (False, False)]
    return PLAIN_KERNELS + [
        judge_kernel(dtype, full, aligned, 3, len(RHO_LADDER), spread=spread)
        for full, spread in forms
        for aligned in (True, False)
    ]


@pytest.fixture(scope="module", params=DTYPES)
def typed(request):
    machine = SimtMachine(source, kernels(request.param))
    yield request.param, machine
    machine.close()


@pytest.fixture(scope="module")
def indexed():
    machine = SimtMachine(source, list(dict.fromkeys(kernels("int64") + kernels("int32") + kernels("float32"))))
    yield machine
    machine.close()


def placed(machine, output, want, *, full=True, skipped=0, start=0, stop=None):
    """The elements [start, stop) of an output and its references in the machine's memory."""
    stop = want.elements if stop is None else stop

    def address(tensor):
        return 0 if tensor is None else machine.tensor(tensor[start:stop], skipped)

    return DeviceOutput(
        address(output),
        address(want.published),
        stop - start,
        want.dtype,
        want.kind,
        truth=address(want.truth) if full else 0,
        scale=address(want.scale) if full else 0,
        spread=address(want.spread) if full else 0,
        ties=address(want.ties),
        ties_length=want.ties.shape[-1] if want.ties is not None else 0,
        first=start,
    )


def assert_agree(found, wanted, elements):
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        if name == "rms":
            assert found[name] == pytest.approx(value, rel=1e-12)
        elif name == "bias":
            assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-9 * math.sqrt(max(elements, 1)))
        else:
            assert found[name] == value, name


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("tolerances", [TOLERANCES, INCOMPARABLE], ids=["nested", "incomparable"])
def test_all_statistics_agree(typed, style, tolerances):
    dtype, machine = typed
    output, want = example(hash_of(dtype, style), dtype, COUNT, style)
    found, code = DeviceJudge(machine).statistics([placed(machine, output, want)], "poison", tolerances)
    assert_agree(found, statistics([output], [want], "poison", tolerances), COUNT)
    assert code == digest([output])


def hash_of(*parts):
    return sum(ord(c) * (k + 1) for k, c in enumerate("/".join(parts)))


def test_the_published_value_alone_gives_the_published_statistics(typed):
    dtype, machine = typed
    output, want = example(5, dtype, COUNT, "edge")
    found, code = DeviceJudge(machine).statistics([placed(machine, output, want, full=False)], "poison", TOLERANCES)
    wanted = statistics([output], [want], "poison", TOLERANCES)
    kept = {n: v for n, v in wanted.items() if not re.match("nonfinite|worst|rms|bias|bound", n)}
    assert_agree(found, kept, COUNT)
    assert found["mismatch:0.001:0.001"] > 0
    assert code == digest([output])


def test_without_spread_and_with_stale_memory(typed):
    dtype, machine = typed
    output, want = example(6, dtype, COUNT, "bits", spread=False)
    found, _ = DeviceJudge(machine).statistics([placed(machine, output, want)], "stale", TOLERANCES)
    assert_agree(found, statistics([output], [want], "stale", TOLERANCES), COUNT)
    assert found["unwritten"] == 0


@pytest.mark.parametrize("count", [1, 3, 16, 17])
def test_few_elements(typed, count):
    dtype, machine = typed
    output, want = example(count, dtype, count, "close")
    found, code = DeviceJudge(machine).statistics([placed(machine, output, want)], "poison", TOLERANCES)
    assert_agree(found, statistics([output], [want], "poison", TOLERANCES), count)
    assert code == digest([output])


def test_addresses_need_no_alignment(typed):
    dtype, machine = typed
    output, want = example(7, dtype, COUNT, "edge")
    part = placed(machine, output, want, skipped=8)
    found, code = DeviceJudge(machine).statistics([part], "poison", TOLERANCES)
    assert_agree(found, statistics([output], [want], "poison", TOLERANCES), COUNT)
    assert code == digest([output])


def test_parts_give_what_the_whole_gives(typed):
    dtype, machine = typed
    output, want = example(8, dtype, COUNT, "close")
    cuts = [0, 16, 512, 1200, COUNT]
    parts = (placed(machine, output, want, start=a, stop=b) for a, b in itertools.pairwise(cuts))
    found, code = DeviceJudge(machine).statistics([parts], "poison", TOLERANCES)
    assert_agree(found, statistics([output], [want], "poison", TOLERANCES), COUNT)
    assert code == digest([output])


def test_parts_must_follow_each_other(typed):
    dtype, machine = typed
    output, want = example(8, dtype, COUNT, "close")
    gap = [placed(machine, output, want, start=0, stop=16), placed(machine, output, want, start=32, stop=48)]
    ragged = [placed(machine, output, want, start=0, stop=10), placed(machine, output, want, start=10, stop=20)]
    for parts in (gap, ragged):
        with pytest.raises(ValueError, match="a multiple of 16 expected"):
            DeviceJudge(machine).statistics([parts], "poison", TOLERANCES)
        machine.launches = []


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_indices_are_judged_by_what_they_point_at(indexed, dtype):
    output, want = index_example(3, 700, 9, dtype)
    found, _ = DeviceJudge(indexed).statistics([placed(indexed, output, want)], "poison", TOLERANCES)
    wanted = statistics([output], [want], "poison", TOLERANCES)
    assert_agree(found, wanted, 700)
    assert found["nonfinite"] > 0
    assert found["worst"] > 1


def test_several_outputs_count_together(indexed):
    first, second = example(1, "float32", COUNT, "close"), index_example(2, 300, 5)
    outputs, expected = zip(first, second, strict=True)
    parts = [placed(indexed, *pair) for pair in (first, second)]
    found, code = DeviceJudge(indexed).statistics(parts, "poison", TOLERANCES)
    assert_agree(found, statistics(outputs, expected, "poison", TOLERANCES), COUNT + 300)
    assert code == digest(outputs)
    assert code != digest(outputs[::-1])


def test_outputs_without_elements(indexed):
    output, want = example(1, "float32", 0, "equal")
    part = DeviceOutput(0, 0, 0, "float32")
    found, code = DeviceJudge(indexed).statistics([part], "poison", TOLERANCES)
    assert found == statistics([output], [want], "poison", TOLERANCES)
    assert code == digest([output])


def test_references_are_all_there_or_none(indexed):
    output, want = example(1, "float32", 64, "close")
    parts = [placed(indexed, output, want), placed(indexed, output, want, full=False)]
    with pytest.raises(ValueError, match="either all outputs have truth and scale, or none"):
        DeviceJudge(indexed).statistics(parts, "poison", TOLERANCES)
    indexed.launches = []


def test_the_digest_of_inputs(indexed):
    tensors = [torch.arange(k, dtype=torch.uint8) for k in (5000, 0, 3, 16)]
    ranges = [(indexed.tensor(t), t.numel()) for t in tensors]
    judge = DeviceJudge(indexed)
    assert judge.digest(ranges) == digest(tensors)
    changed = tensors[0].clone()
    changed[4999] ^= 1
    assert judge.digest([(indexed.tensor(changed), 5000), *ranges[1:]]) == digest([changed, *tensors[1:]])
    assert digest([changed, *tensors[1:]]) != digest(tensors)


def test_no_race_and_no_stray_access():
    """The same kernels under the checked build, whose every access is watched."""
    names = kernels("float16")
    machine = SimtMachine(source, names, checked=True)
    output, want = example(9, "float16", 515, "edge")
    found, _ = DeviceJudge(machine).statistics([placed(machine, output, want)], "poison", TOLERANCES)
    assert_agree(found, statistics([output], [want], "poison", TOLERANCES), 515)
    machine.close()


def test_a_judge_that_is_wrong_shows():
    """Negative control: with `<=` of the comparison turned to `<`, the edges of the tolerance differ."""
    text = source().replace("unequal && !(actual <= allowed)", "unequal && !(actual < allowed)")
    assert text != source()
    machine = SimtMachine(lambda: text, kernels("float32"))
    published = torch.zeros(64)
    output, want = example(1, "float32", 64, "equal")
    want = dataclasses.replace(want, published=published)
    output = torch.full((64,), 0.5)
    tolerances = ((0.25, 0.5), (0.0, 0.5), (1.0, 1.0))
    found, _ = DeviceJudge(machine).statistics([placed(machine, output, want)], "poison", tolerances)
    assert found["mismatch:0.25:0.5"] != statistics([output], [want], "poison", tolerances)["mismatch:0.25:0.5"]
    machine.close()


def test_the_tables_agree_with_the_model():
    assert dict(zip(judging.CODES, judging.ITEM_BYTES, strict=True)) == ITEM_BYTES
    known = {name: form.precision for name, form in FORMATS.items()}
    assert dict(zip(judging.CODES, judging.PRECISION, strict=True)) == dict.fromkeys(ITEM_BYTES, 0) | known
