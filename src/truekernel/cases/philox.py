"""A counter-based generator: word k of a stream depends on (seed, stream, k) alone, so every machine and device makes the same bits.

Philox4x32 with 10 rounds: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11.
"""

from __future__ import annotations

import hashlib

import numpy as np

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
MASK = 0xFFFFFFFF
BLOCKS_AT_ONCE = 1 << 14
"""Small enough that the arrays of a chunk stay in cache."""


def philox(
    counters: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], key: tuple[int, int]
) -> tuple[np.ndarray, ...]:
    """Four arrays of 32-bit words for four uint64 arrays of counter words below 2**32 (all of one shape) and a key of two such words."""
    c0, c1, c2, c3 = counters
    k0, k1 = key
    shift, mask = np.uint64(32), np.uint64(MASK)
    m0, m1 = (np.uint64(m) for m in MULTIPLIERS)
    for _ in range(ROUNDS):
        p0, p1 = c0 * m0, c2 * m1
        c0 = (p1 >> shift) ^ c1 ^ np.uint64(k0)
        c1 = p1 & mask
        c2 = (p0 >> shift) ^ c3 ^ np.uint64(k1)
        c3 = p0 & mask
        k0, k1 = (k0 + WEYL[0]) & MASK, (k1 + WEYL[1]) & MASK
    return c0, c1, c2, c3


def stream_of(name: str) -> int:
    """64-bit number of a named stream: the first eight bytes of SHA-256, little-endian."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def words(seed: int, name: str, count: int) -> np.ndarray:
    """The first `count` 32-bit words of the stream `name` under a seed (0 <= seed < 2**64), as a uint32 array."""
    if not 0 <= seed < 1 << 64:
        raise ValueError(f"seed {seed} is not in [0, 2**64)")
    stream = stream_of(name)
    key = (seed & MASK, seed >> 32)
    blocks = -(-count // 4)
    result = np.empty((blocks, 4), dtype=np.uint32)
    for start in range(0, blocks, BLOCKS_AT_ONCE):
        low = np.arange(start, min(start + BLOCKS_AT_ONCE, blocks), dtype=np.uint64)
        high = low >> np.uint64(32)
        streams = (np.full_like(low, stream & MASK), np.full_like(low, stream >> 32))
        for column, made in enumerate(philox((low & np.uint64(MASK), high, *streams), key)):
            result[start : start + low.size, column] = made
    return result.reshape(-1)[:count]
