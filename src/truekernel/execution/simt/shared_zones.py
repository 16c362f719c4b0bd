"""Red zones behind static shared variables of a checked build.

The compiler gives every thread-local variable a section of its own (`-fdata-sections`); a section without contents that is made larger
before linking leaves a gap behind its variable, which no symbol covers and which the checker therefore refuses.
"""

from __future__ import annotations

import struct
from pathlib import Path

RED_ZONE = 256
"""Bytes of the gap, at least."""
_SHT_NOBITS = 8
_SHF_TLS = 0x400
_SECTION = struct.Struct("<IIQQQQIIQQ")


def widen(path: Path, gap: int = RED_ZONE) -> int:
    """Adds `gap` bytes to every thread-local section without contents of the ELF64 object file `path`, in place.

    Returns how many sections were widened. Raises ValueError when `path` is no little-endian ELF64 file.
    """
    data = bytearray(path.read_bytes())
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path} is no little-endian ELF64 object")
    (table,) = struct.unpack_from("<Q", data, 0x28)
    entry, count = struct.unpack_from("<HH", data, 0x3A)
    if count == 0:
        count = _SECTION.unpack_from(data, table)[5]  # more than 65,280 sections: the first entry's size says how many
    widened = 0
    for i in range(count):
        at = table + i * entry
        fields = list(_SECTION.unpack_from(data, at))
        if fields[1] == _SHT_NOBITS and fields[2] & _SHF_TLS:
            fields[5] += gap
            _SECTION.pack_into(data, at, *fields)
            widened += 1
    path.write_bytes(data)
    return widened
