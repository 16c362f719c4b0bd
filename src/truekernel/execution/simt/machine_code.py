"""Hash of normalised machine code: names, addresses and line tables away, instructions and constants kept.

Source of the layout: System V ABI (ELF-64) and its AMD64 supplement (relocation types).
"""

from __future__ import annotations

import hashlib
import struct
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from truekernel.errors import BadInputError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_SYMTAB, _RELA, _NOBITS = 2, 4, 8
_MERGE, _STRINGS = 0x10, 0x20
_RESERVED = 0xFF00
_PC_RELATIVE = frozenset({2, 4, 9, 19, 20, 22, 24, 41, 42})


@dataclass(frozen=True, slots=True)
class _Section:
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    entry_size: int


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    type: int
    section: int
    value: int


class _Object:
    """A relocatable object: sections, symbols, and relocations by the section that they change."""

    def __init__(self, data: bytes) -> None:
        header = _HEADER.unpack_from(data)
        if header[0][:6] != b"\x7fELF\x02\x01" or header[1] != 1:
            raise BadInputError("not a 64-bit little-endian relocatable ELF object")
        self.data = data
        start, count = header[6], header[12]
        self.sections = [self._section(start + k * _SECTION.size) for k in range(count)]
        table = next(s for s in self.sections if s.type == _SYMTAB)
        names = self.sections[table.link]
        self.symbols = [self._symbol(table.offset + k * _SYMBOL.size, names) for k in range(table.size // _SYMBOL.size)]
        self.by_name = {s.name: s for s in self.symbols if s.name and s.section}
        self.relocations: dict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
        for section in self.sections:
            if section.type == _RELA:
                for k in range(section.size // _RELOCATION.size):
                    at, info, addend = _RELOCATION.unpack_from(data, section.offset + k * _RELOCATION.size)
                    self.relocations[section.info].append((at, info & 0xFFFFFFFF, info >> 32, addend))

    def content(self, section: _Section) -> bytes:
        """Bytes of a section; empty when it occupies none in the file."""
        return b"" if section.type == _NOBITS else self.data[section.offset : section.offset + section.size]

    def _section(self, at: int) -> _Section:
        _, kind, flags, _, offset, size, link, info, _, entry_size = _SECTION.unpack_from(self.data, at)
        return _Section(kind, flags, offset, size, link, info, entry_size)

    def _symbol(self, at: int, names: _Section) -> _Symbol:
        name, info, _, section, value, _ = _SYMBOL.unpack_from(self.data, at)
        begin = names.offset + name
        text = self.data[begin : self.data.index(b"\0", begin)].decode(errors="replace")
        return _Symbol(text, info & 15, section, value)


def code_hash(data: bytes, symbols: Sequence[str]) -> str:
    """Hash of the sections that `symbols` lead to, each function and variable in a section of its own; 16 hex digits.

    A section is known by the order in which it is met, an undefined symbol by its name, a mergeable constant by its bytes. Raises
    BadInputError when the object lacks a symbol.
    """
    obj = _Object(data)
    digest = hashlib.sha256()
    order: dict[int, int] = {}
    queue: list[int] = []

    def number(section: int) -> int:
        if section not in order:
            order[section] = len(order)
            queue.append(section)
        return order[section]

    for name in symbols:
        symbol = obj.by_name.get(name)
        if symbol is None:
            raise BadInputError(f"the object has no symbol '{name}'")
        digest.update(b"%d+%d;" % (number(symbol.section), symbol.value))
    while queue:
        index = queue.pop(0)
        section = obj.sections[index]
        digest.update(b"\nsection %d %d " % (section.flags, section.size))
        digest.update(obj.content(section))
        for at, kind, which, addend in sorted(obj.relocations.get(index, ())):
            symbol = obj.symbols[which]
            digest.update(b"\n@%d:%d " % (at, kind))
            if not symbol.section or symbol.section >= _RESERVED:
                digest.update(b"%s%+d" % (symbol.name.encode(), addend))
                continue
            target = obj.sections[symbol.section]
            place = symbol.value + addend
            if target.flags & _MERGE:
                digest.update(_constant(obj, target, place + 4 * (kind in _PC_RELATIVE)))
            else:
                digest.update(b"%d+%d" % (number(symbol.section), place))
    return digest.hexdigest()[:16]


def _constant(obj: _Object, section: _Section, place: int) -> bytes:
    """The mergeable constant at `place`, which an immediate operand behind the address may have moved forward a little."""
    content = obj.content(section)
    place = max(0, min(place, len(content) - 1))
    if section.flags & _STRINGS:
        return content[place : content.find(b"\0", place) + 1]
    size = section.entry_size or 1
    begin = -(-place // size) * size
    return content[begin : begin + size]
