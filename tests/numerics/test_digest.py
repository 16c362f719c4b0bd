"""The digest sees every byte, every place and every length, and its native copy agrees."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from truekernel import numerics
from truekernel.numerics.digest import digest

HEADER = Path(numerics.__file__).parent / "native" / "digest.h"
COMPILER = next((name for name in ("clang++", "clang++-19", "g++") if shutil.which(name)), None)
WRAPPER = """
#include "digest.h"
extern "C" uint64_t of(const void *data, uint64_t bytes, uint64_t number) { return tk_digest_of(data, bytes, number); }
"""


def of(*parts: bytes) -> str:
    return digest([torch.frombuffer(bytearray(p), dtype=torch.uint8) if p else torch.zeros(0) for p in parts])


def test_known_values():
    """Stored executions are compared by these: a change needs a new name."""
    assert of() == "0000000000000000"
    assert of(b"") == "0000000000000000"
    assert of(bytes(range(40))) == digest([torch.arange(40, dtype=torch.uint8)])
    known = ["419a8b5a0c8fdc91", "fe75f2181e4c41a9", "d5a6651cd500fd39"]
    assert [of(b"a"), of(bytes(16)), of(bytes(range(100)), b"xyz")] == known


@given(st.binary(min_size=1, max_size=200), st.data())
def test_every_bit_counts(data, draw):
    place = draw.draw(st.integers(0, len(data) - 1))
    changed = bytearray(data)
    changed[place] ^= 1 << draw.draw(st.integers(0, 7))
    assert of(bytes(changed)) != of(data)


@given(st.binary(min_size=1, max_size=100), st.integers(1, 40))
def test_trailing_zeros_count(data, zeros):
    assert of(data + bytes(zeros)) != of(data)


@given(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16))
def test_places_and_outputs_count(a, b):
    if a != b:
        assert of(a + b) != of(b + a)
        assert of(a, b) != of(b, a)
    assert of(a + b) != of(a, b)


def test_equal_changes_in_two_places_do_not_cancel():
    """Sign flips move the same bit of every word."""
    seen = {of(bytes(160))}
    for first in range(10):
        for second in range(first):
            data = bytearray(160)
            data[16 * first + 15] ^= 0x80
            data[16 * second + 15] ^= 0x80
            seen.add(of(bytes(data)))
    assert len(seen) == 46


def test_shape_and_dtype_do_not_count_only_bytes():
    tensor = torch.arange(12, dtype=torch.float32)
    assert digest([tensor.reshape(3, 4)]) == digest([tensor]) == digest([tensor.view(torch.int32)])
    assert digest([tensor.reshape(3, 4).t()]) == digest([tensor.reshape(3, 4).t().contiguous()]) != digest([tensor])


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_the_native_copy_agrees(tmp_path):
    (tmp_path / "wrapper.cpp").write_text(WRAPPER)
    library = tmp_path / "digest.so"
    flags = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", str(HEADER.parent)]
    subprocess.run([COMPILER, *flags, str(tmp_path / "wrapper.cpp"), "-o", str(library)], check=True)
    native = ctypes.CDLL(str(library)).of
    native.restype, native.argtypes = ctypes.c_uint64, (ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64)

    @given(st.lists(st.binary(max_size=90), max_size=3))
    def check(parts):
        total = sum(native(part, len(part), number) for number, part in enumerate(parts))
        assert f"{total % 2**64:016x}" == of(*parts)

    check()
