"""A 64-bit digest of bytes that does not depend on the order in which they are visited, so that any number of threads gets the same one.

Bytes are taken as 16-byte vectors (two little-endian words, low and high), the last one padded with zeros. Vector v of an execution's k-th output has the index
k * 2**40 + v. Its word is

    h = low ^ (index * INDEX + OFFSET);  h = (h ^ h >> 32) * FIRST;  h = ((h ^ h >> 29) + high) * SECOND;  h = (h ^ h >> 32) * FIRST;  h ^= h >> 29

modulo 2**64: for a fixed index and one fixed half, different values of the other half give different words. The digest is the sum of all words modulo 2**64, and the sum of
all numbers of bytes times INDEX. It guards against accidents, not against attackers. `native/digest.h` and, on a device,
`native/items.cuh` compute the same.

Raw bytes count: zeros of both signs, and NaNs with different bits, differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from truekernel.numerics.formats import raw

INDEX = 0x9E3779B97F4A7C15
OFFSET = 0xD1B54A32D192ED03
FIRST = 0xFF51AFD7ED558CCD
SECOND = 0xC4CEB9FE1A85EC53
VECTORS_OF_OUTPUT = 1 << 40
"""Indices that each output has for itself."""
_MASK = (1 << 64) - 1
_VECTORS_AT_ONCE = 1 << 16


def digest(outputs: Sequence[torch.Tensor]) -> str:
    """16 hex digits over the bytes of CPU tensors, in row-major order (see the module's text)."""
    total = length = 0
    for number, output in enumerate(outputs):
        data = raw(output).numpy()
        total += _sum(data, number * VECTORS_OF_OUTPUT)
        length += data.size
    return finished(total, length)


def finished(total: int, length: int) -> str:
    """The digest from the sum of all words and the number of bytes."""
    return f"{(total + length * INDEX) & _MASK:016x}"


def _sum(data: np.ndarray, first: int) -> int:
    padded = -data.size % 16
    vectors = np.concatenate([data, np.zeros(padded, np.uint8)]) if padded else data
    words = np.ascontiguousarray(vectors).view("<u8").reshape(-1, 2)
    total = 0
    for start in range(0, len(words), _VECTORS_AT_ONCE):
        part = words[start : start + _VECTORS_AT_ONCE]
        index = np.arange(first + start, first + start + len(part), dtype=np.uint64)
        total += int(_mixed(index, part[:, 0], part[:, 1]).sum(dtype=np.uint64))
    return total & _MASK


def _mixed(index: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    h = low ^ (index * np.uint64(INDEX) + np.uint64(OFFSET))
    h = (h ^ (h >> np.uint64(32))) * np.uint64(FIRST)
    h = ((h ^ (h >> np.uint64(29))) + high) * np.uint64(SECOND)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(FIRST)
    return h ^ (h >> np.uint64(29))
