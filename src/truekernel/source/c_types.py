"""C types as records: canonical names, pointers, array extents."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

FLOATING = frozenset({"float", "double", "__half", "__nv_bfloat16"})
INTEGRAL = frozenset(
    {
        "bool",
        "char",
        "signed char",
        "unsigned char",
        "short",
        "unsigned short",
        "int",
        "unsigned int",
        "long long",
        "unsigned long long",
    }
)
_ALIASES = {
    "half": "__half",
    "nv_bfloat16": "__nv_bfloat16",
    "bfloat16": "__nv_bfloat16",
    "half2": "__half2",
    "nv_bfloat162": "__nv_bfloat162",
    "size_t": "unsigned long long",
    "uintptr_t": "unsigned long long",
    "ptrdiff_t": "long long",
    "ssize_t": "long long",
    "intptr_t": "long long",
    "int8_t": "signed char",
    "uint8_t": "unsigned char",
    "int16_t": "short",
    "uint16_t": "unsigned short",
    "int32_t": "int",
    "uint32_t": "unsigned int",
    "int64_t": "long long",
    "uint64_t": "unsigned long long",
    "uchar": "unsigned char",
    "ushort": "unsigned short",
    "uint": "unsigned int",
    "ulong": "unsigned long long",
    "_Float16": "__half",
}
_WORDS = frozenset({"signed", "unsigned", "char", "short", "int", "long"})
_VECTOR = re.compile(r"(char|uchar|short|ushort|int|uint|long|ulong|longlong|ulonglong|float|double)([1-4])")
_QUALIFIER = re.compile(
    r"\b(?:const|volatile|__restrict__|__restrict|restrict|static|extern|inline|constexpr|register|mutable|struct|class|enum"
    r"|typename|__shared__|__constant__|__device__|__managed__|__grid_constant__)\b"
)


def canonical(name: str) -> str:
    """The canonical spelling of a type name without pointers: `unsigned` gives "unsigned int", `std::size_t` "unsigned long long".

    `long` is 64 bits wide (the LP64 model of CUDA on Linux), hence "long long". Names that are not scalars come back as written.
    """
    name = " ".join(_QUALIFIER.sub(" ", name).split()).removeprefix("::").removeprefix("std::")
    if name in _ALIASES:
        return _ALIASES[name]
    words = name.split()
    if not words or not set(words) <= _WORDS:
        return name
    unsigned = "unsigned" in words
    if "char" in words:
        return "unsigned char" if unsigned else "signed char" if "signed" in words else "char"
    size = "short" if "short" in words else "long long" if "long" in words else "int"
    return f"unsigned {size}" if unsigned else size


@dataclass(frozen=True, slots=True)
class CType:
    """A type: canonical `base` name, levels of `pointer`, array `extents` as written ("" for an open one), and where it lives."""

    base: str
    pointer: int = 0
    extents: tuple[str, ...] = ()
    const: bool = False
    shared: bool = False

    @property
    def scalar(self) -> bool:
        """Whether this is neither a pointer nor an array."""
        return not self.pointer and not self.extents

    @property
    def floating(self) -> bool:
        """Whether this is one real number."""
        return self.scalar and self.base in FLOATING

    @property
    def integral(self) -> bool:
        """Whether this is one integer or truth value."""
        return self.scalar and self.base in INTEGRAL

    @property
    def element(self) -> CType | None:
        """What `*p` or `a[i]` of this type is; None when it can't be indexed."""
        if self.extents:
            return replace(self, extents=self.extents[1:])
        return replace(self, pointer=self.pointer - 1) if self.pointer else None

    @property
    def component(self) -> CType | None:
        """What `.x` of a vector type is (`float` for `float4`); None for other types."""
        match = _VECTOR.fullmatch(self.base)
        if match and self.scalar:
            names = {
                "uchar": "unsigned char",
                "ushort": "unsigned short",
                "longlong": "long long",
                "ulonglong": "unsigned long long",
            }
            return CType(names.get(match[1], canonical(match[1])))
        halves = {"__half2": "__half", "__nv_bfloat162": "__nv_bfloat16"}
        return CType(halves[self.base]) if self.scalar and self.base in halves else None
