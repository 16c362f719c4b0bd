"""Scalar C types of kernel arguments: ranges and bytes. Names are those of `source.canonical`."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A C scalar as a kernel receives it. `code`: format character of `struct`; `bits`, `signed`: 0 and True for floats."""

    name: str
    code: str
    bits: int = 0
    signed: bool = True

    @property
    def is_integer(self) -> bool:
        """Whether values are whole numbers."""
        return self.bits > 0


TYPES: dict[str, ScalarType] = {
    t.name: t
    for t in (
        ScalarType("bool", "?", 1, False),
        ScalarType("char", "b", 8),
        ScalarType("signed char", "b", 8),
        ScalarType("unsigned char", "B", 8, False),
        ScalarType("short", "h", 16),
        ScalarType("unsigned short", "H", 16, False),
        ScalarType("int", "i", 32),
        ScalarType("unsigned int", "I", 32, False),
        ScalarType("long long", "q", 64),
        ScalarType("unsigned long long", "Q", 64, False),
        ScalarType("float", "f"),
        ScalarType("double", "d"),
        ScalarType("__half", "e"),
        ScalarType("__nv_bfloat16", "bf16"),
    )
}


def convert(value: float, ctype: str) -> float:
    """`value` as C would pass it: negative values wrap into unsigned types, everything but zero is true.

    `ctype`: canonical name. Raises ValueError when an integer type is given a fraction, NaN or an infinity, or a signed one a value
    that it can't hold.
    """
    kind = TYPES[ctype]
    if not kind.is_integer:
        return float(value)
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a whole number")
    whole = int(value)
    if whole != value:
        raise ValueError(f"{value} is not a whole number: use // instead of /")
    if ctype == "bool":
        return int(whole != 0)
    if kind.signed and not -(1 << (kind.bits - 1)) <= whole < 1 << (kind.bits - 1):
        raise ValueError(f"{whole} does not fit into {ctype}")
    return whole if kind.signed else whole % (1 << kind.bits)


def pack(value: float, ctype: str) -> bytes:
    """Little-endian bytes of a scalar of canonical type `ctype`."""
    code = TYPES[ctype].code
    if code == "bf16":
        return _bfloat16(float(value))
    if code in "fe":
        try:
            return struct.pack("<" + code, value)
        except OverflowError:
            return struct.pack("<" + code, float("inf") if value > 0 else float("-inf"))
    return struct.pack("<" + code, value if code == "d" else bool(value) if code == "?" else int(value))


def _bfloat16(value: float) -> bytes:
    bits = int.from_bytes(pack(value, "float"), "little")
    if math.isnan(value):
        return b"\xff\x7f"
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).to_bytes(2, "little")
