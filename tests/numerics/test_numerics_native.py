"""The native copy of the statistics agrees with the Python text, and with torch."""

import ctypes
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from truekernel import numerics
from truekernel.model import ITEM_BYTES
from truekernel.numerics.expected import Expected
from truekernel.numerics.formats import TORCH_DTYPES, from_bytes
from truekernel.numerics.statistics import RHO_LADDER, statistic_names, statistics

HEADER = Path(numerics.__file__).parent / "native" / "statistics.h"
COMPILERS = [name for name in ("clang++", "clang++-19", "g++") if shutil.which(name)]
TOLERANCES = ((1e-2, 1e-2), (1e-4, 1e-4), (1e-3, 1e-3), (0.0, 0.5), (0.25, 0.0), (0.0, 0.0))
WRAPPER = """
#include "statistics.h"
extern "C" int run(const tk_output *outputs, int count, const tk_tolerance *tolerances, int tolerance_count, const double *rhos,
                   int rho_count, int poison, double *values) {
  return tk_statistics(outputs, count, tolerances, tolerance_count, rhos, rho_count, poison, values);
}
"""


class Output(ctypes.Structure):
    _fields_ = (
        ("dtype", ctypes.c_int32),
        ("kind", ctypes.c_int32),
        ("elements", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("output", "published", "truth", "scale", "spread", "ties")),
        ("ties_length", ctypes.c_int64),
    )


@pytest.fixture(scope="module", params=COMPILERS[-2:] or ["none"])
def native(request, tmp_path_factory):
    if request.param == "none":
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("native")
    (folder / "wrapper.cpp").write_text(WRAPPER)
    library = folder / "statistics.so"
    flags = ["-std=c++17", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    command = [request.param, *flags, "-I", str(HEADER.parent), str(folder / "wrapper.cpp"), "-o", str(library)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library)).run


def run_native(function, outputs, expected, fill, tolerances=TOLERANCES):
    rows = (Output * len(expected))()
    for row, output, want in zip(rows, outputs, expected, strict=True):
        row.dtype = list(ITEM_BYTES).index(want.dtype)
        row.kind = int(want.kind == "index")
        row.elements = want.elements
        row.output, row.published = output.data_ptr(), want.published.data_ptr()
        row.truth, row.scale = want.truth.data_ptr(), want.scale.data_ptr()
        row.spread = want.spread.data_ptr() if want.spread is not None else None
        if want.ties is not None:
            row.ties, row.ties_length = want.ties.data_ptr(), want.ties.shape[-1]
    pairs = np.array(tolerances, dtype=np.float64)
    rhos = np.array(RHO_LADDER)
    names = statistic_names(tolerances)
    values = np.zeros(len(names))
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (pairs, rhos, values)]
    poison = int(fill == "poison")
    assert function(rows, len(expected), pointers[0], len(tolerances), pointers[1], len(rhos), poison, pointers[2]) == 0
    return dict(zip(names, values.tolist(), strict=True))


def assert_agree(found, wanted, elements):
    for name, value in wanted.items():
        if name == "rms":
            assert found[name] == pytest.approx(value, rel=1e-12)
        elif name == "bias":
            assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-9 * math.sqrt(max(elements, 1)))
        else:
            assert found[name] == value, name


@st.composite
def pairs_of_tensors(draw, dtype):
    """An output and its published value: raw bits, near neighbours, exact ties of a tolerance, and special values."""
    size = ITEM_BYTES[dtype]
    n = draw(st.integers(1, 12))
    published = from_bytes(draw(st.binary(min_size=n * size, max_size=n * size)), dtype, (n,))
    if dtype in ("float32", "float16", "bfloat16", "float64") and draw(st.booleans()):
        small = st.floats(-4, 4, width=32)
        special = st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, 2.0, 1e-40, 65504.0])
        values = draw(st.lists(small | special, min_size=n, max_size=n))
        published = torch.tensor(values, dtype=torch.float64).to(TORCH_DTYPES[dtype])
    factor = draw(st.sampled_from([0.0, 1e-4, 1e-3, 1e-2, 0.25, 1.0]))
    signs = torch.tensor(draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=n, max_size=n)))
    if draw(st.booleans()):
        return from_bytes(draw(st.binary(min_size=n * size, max_size=n * size)), dtype, (n,)), published
    wide = published.to(torch.float64)
    near = wide + signs * (factor + factor * wide.abs()) * draw(st.sampled_from([1.0, 1.0 - 1e-7, 1.0 + 1e-7]))
    if not published.is_floating_point():
        near = near.clamp(torch.iinfo(published.dtype).min / 2, torch.iinfo(published.dtype).max / 2)
    return near.to(TORCH_DTYPES[dtype]), published


@pytest.mark.parametrize("dtype", sorted(TORCH_DTYPES))
def test_native_agrees_with_python(native, dtype):
    @settings(max_examples=150, deadline=None)
    @given(pairs_of_tensors(dtype), st.sampled_from(["poison", "stale"]), st.data())
    def check(pair, fill, data):
        output, published = pair
        n = published.numel()
        sizes = st.sampled_from([0.0, 1e-300, 1e-9, 1e-3, 1.0, 1e9])
        scale = torch.tensor(data.draw(st.lists(sizes, min_size=n, max_size=n)), dtype=torch.float64)
        spread = scale.flip(0) if data.draw(st.booleans()) else None
        truth = published.to(torch.float64) * data.draw(st.sampled_from([1.0, 1.0 + 1e-8, -1.0]))
        want = Expected("y", dtype, "value", published, truth, scale, spread)
        expected = [want, want] if data.draw(st.booleans()) else [want]
        outputs = [output] * len(expected)
        assert_agree(
            run_native(native, outputs, expected, fill), statistics(outputs, expected, fill, TOLERANCES), 2 * n
        )

    check()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_native_agrees_at_the_boundary_of_every_16_bit_value(native, dtype, tolerance):
    """Every bit pattern as output, against published values within a few steps of the tolerance's edge."""
    output = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(TORCH_DTYPES[dtype])
    atol, rtol = tolerance
    edge = (output.double() + atol + rtol * output.double().abs()).to(output.dtype)
    for step in range(-2, 3):
        published = (edge.view(torch.int16) + step).view(output.dtype)
        want = Expected(
            "y", dtype, "value", published, published.double(), torch.zeros(output.shape, dtype=torch.float64)
        )
        refused = output.numel() - int(torch.isclose(published, output, rtol=rtol, atol=atol).sum())
        found = run_native(native, [output], [want], "stale", (tolerance,))
        assert found[statistic_names((tolerance,))[8]] == refused


def test_native_agrees_on_index_tables(native):
    @settings(max_examples=100, deadline=None)
    @given(st.data())
    def check(data):
        n, length = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 5))
        values = st.sampled_from([0.0, 1.0, 1.5, -2.0, math.inf, -math.inf, math.nan])
        ties = torch.tensor(data.draw(st.lists(values, min_size=n * length, max_size=n * length)), dtype=torch.float64)
        truth = torch.tensor(data.draw(st.lists(st.integers(0, length - 1), min_size=n, max_size=n)), dtype=torch.int64)
        output = torch.tensor(
            data.draw(st.lists(st.integers(-2, length + 1), min_size=n, max_size=n)), dtype=torch.int64
        )
        scale = torch.full((n,), data.draw(st.sampled_from([0.0, 0.5])), dtype=torch.float64)
        want = Expected("i", "int64", "index", truth, truth.double(), scale, None, ties.reshape(n, length))
        assert_agree(
            run_native(native, [output], [want], "stale"), statistics([output], [want], "stale", TOLERANCES), n
        )

    check()


def test_an_unknown_dtype_is_refused(native):
    row = (Output * 1)()
    row[0].dtype = 9
    assert native(row, 1, None, 0, None, 0, 0, None) == -1


def test_native_sees_a_difference(native):
    published = torch.arange(8, dtype=torch.float32)
    want = Expected("y", "float32", "value", published, published.double(), torch.ones(8, dtype=torch.float64))
    output = published.clone()
    output[3] += 2
    found = run_native(native, [output], [want], "stale")
    assert (found["worst"], found["mismatch:0.01:0.01"]) == (2.0, 1.0)
