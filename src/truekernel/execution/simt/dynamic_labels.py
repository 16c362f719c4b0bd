"""Repair of objects made by g++, which forgets the symbol name given to a declaration inside a template.

A dynamic shared array is declared as thread-local with the name `tk_dynamic_shared`. Nothing else in device code is thread-local and defined
elsewhere, so every undefined thread-local symbol of an object means that array, whatever it is called.
"""

from __future__ import annotations

import struct
from pathlib import Path

LABEL = "tk_dynamic_shared"
PRELUDE = (
    "extern TK_DYNAMIC_SHARED char tk_dynamic_any[] TK_DYNAMIC_LABEL;\n"
    'extern "C" __attribute__((used)) inline void *tk_dynamic_named() { return tk_dynamic_any; }\n'
    "static void *(*const tk_dynamic_kept)() __attribute__((used)) = tk_dynamic_named;\n"
)
"""In front of a translation unit: makes sure that the object has the label among its strings."""
_SYMTAB, _TLS = 2, 6
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


def label_dynamic_shared(path: Path) -> int:
    """Give all undefined thread-local symbols of the ELF64 object `path` the label, in place. Returns how many were renamed."""
    data = bytearray(path.read_bytes())
    (table,) = struct.unpack_from("<Q", data, 0x28)
    entry, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [_SECTION.unpack_from(data, table + k * entry) for k in range(count)]
    symbols = next(s for s in sections if s[1] == _SYMTAB)
    strings = sections[symbols[6]]
    label = data.find(LABEL.encode() + b"\0", strings[4], strings[4] + strings[5])
    renamed = 0
    if label < 0:
        return 0
    for at in range(symbols[4], symbols[4] + symbols[5], _SYMBOL.size):
        name, info, other, section, value, size = _SYMBOL.unpack_from(data, at)
        if section == 0 and info & 15 == _TLS and strings[4] + name != label:
            _SYMBOL.pack_into(data, at, label - strings[4], info, other, section, value, size)
            renamed += 1
    if renamed:
        path.write_bytes(data)
    return renamed
