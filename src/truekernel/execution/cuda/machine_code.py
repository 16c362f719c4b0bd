"""Cubins as ELF files: what of a kernel's machine code makes it the kernel that it is.

Names, line tables and the order of symbols do not count; instructions, constants, shared and local memory, parameters and launch bounds do.
Layout of ELF: "Tool Interface Standard (TIS) Executable and Linking Format (ELF) Specification", version 1.2. Sections of a kernel K, as in NVIDIA's "CUDA
Binary Utilities": .text.K, .nv.constant<bank>.K, .nv.shared.K, .nv.info.K, and .rel(a).text.K.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from truekernel.errors import MachineError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMTAB, _NOBITS, _RELA, _REL = 2, 8, 4, 9
_CONSTANT = re.compile(r"\.nv\.constant(\d+)(?:\.|$)")
_WITH_SYMBOLS = (0x0A, 0x0F)
"""Attributes of .nv.info that hold symbol numbers: the bank of parameters (its size has another attribute) and what is extern."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section: `kind`, `link` as in its header; `size` also where there are no bytes (shared memory)."""

    name: str
    kind: int
    link: int
    size: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol: `section` is a section number."""

    name: str
    info: int
    section: int
    value: int
    size: int


@dataclass(frozen=True, slots=True)
class Cubin:
    """A parsed cubin."""

    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    def section(self, name: str) -> Section | None:
        """The section of that name."""
        return next((s for s in self.sections if s.name == name), None)


def parse(cubin: bytes) -> Cubin:
    """Sections and symbols of a cubin. Raises MachineError when the bytes are no 64-bit ELF file."""
    try:
        return _parse(cubin)
    except (struct.error, IndexError, ValueError) as error:
        raise MachineError(f"the compiler's machine code is no ELF file that can be read: {error}") from None


def _parse(cubin: bytes) -> Cubin:
    head = _HEADER.unpack_from(cubin)
    if head[0][:5] != b"\x7fELF\x02":
        raise ValueError("wrong magic number")
    offset, count, names = head[6], head[12], head[13]
    raw = [_SECTION.unpack_from(cubin, offset + _SECTION.size * k) for k in range(count)]
    texts = cubin[raw[names][4] : raw[names][4] + raw[names][5]]
    sections = tuple(
        Section(_text(texts, r[0]), r[1], r[6], r[5], b"" if r[1] == _NOBITS else cubin[r[4] : r[4] + r[5]])
        for r in raw
    )
    symbols: list[Symbol] = []
    for section in sections:
        if section.kind == _SYMTAB:
            strings = sections[section.link].data
            for name, info, _, index, value, size in _SYMBOL.iter_unpack(section.data):
                symbols.append(Symbol(_text(strings, name), info, index, value, size))
    return Cubin(sections, tuple(symbols))


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode(errors="replace")


def code_hash(cubin: bytes, symbols: Iterable[str]) -> str:
    """16 hex digits over the machine code of the kernels `symbols`, in that order, and of all that they refer to."""
    parsed = parse(cubin)
    digest = hashlib.sha256()
    seen: set[str] = set()
    queue = list(symbols)
    for name in queue:
        if parsed.section(f".text.{name}") is None:
            raise MachineError(f"the compiler's machine code has no kernel '{name}'")
    while queue:
        name = queue.pop(0)
        if name in seen:
            continue
        seen.add(name)
        for part, called in _parts(parsed, name):
            digest.update(len(part).to_bytes(8, "little") + part)
            queue += called
    for section in parsed.sections:  # global variables: whichever kernel uses them
        if section.name in (".nv.global", ".nv.global.init", ".nv.constant3") or section.name.startswith(
            ".nv.constant3"
        ):
            digest.update(_plain(section))
    return digest.hexdigest()[:16]


def _parts(cubin: Cubin, name: str) -> Iterable[tuple[bytes, list[str]]]:
    """Bytes that identify one function, and functions that it calls."""
    code = cubin.section(f".text.{name}")
    if code is None:
        return
    yield code.data, []
    for section in cubin.sections:
        constant = _CONSTANT.match(section.name)
        if constant and section.name.endswith(f".{name}"):
            yield b"constant" + constant[1].encode() + _plain(section), []
        elif section.name in (f".nv.shared.{name}", f".nv.local.{name}"):
            yield section.name[:10].encode() + _plain(section), []
        elif section.name == f".nv.info.{name}":
            yield b"info" + b"".join(_attributes(section.data)), []
        elif section.kind in (_REL, _RELA) and section.name.endswith(f".text.{name}"):
            yield _relocations(cubin, section, name)


def _plain(section: Section) -> bytes:
    return struct.pack("<Q", section.size) + section.data


def _attributes(data: bytes) -> Iterable[bytes]:
    """Attributes of .nv.info: format, number, then a value or a length and that many bytes."""
    at = 0
    while at + 4 <= len(data):
        form, attribute = data[at], data[at + 1]
        size = struct.unpack_from("<H", data, at + 2)[0] if form == 4 else 0
        if attribute not in _WITH_SYMBOLS:
            yield data[at : at + 4 + size]
        at += 4 + size


def _relocations(cubin: Cubin, section: Section, name: str) -> tuple[bytes, list[str]]:
    """Relocations with what they refer to, and the functions among that."""
    entries, called = [], []
    form = struct.Struct("<QQq" if section.kind == _RELA else "<QQ")
    for entry in form.iter_unpack(section.data):
        where, info = entry[0], entry[1]
        symbol = cubin.symbols[info >> 32] if info >> 32 < len(cubin.symbols) else None
        role, place = b"?", 0
        if symbol is not None:
            target = cubin.sections[symbol.section].name if symbol.section < len(cubin.sections) else ""
            function = target.removeprefix(".text.")
            if target.startswith(".text.") and function != name:
                called.append(function)
            role, place = target.split(".", 2)[1].encode() if target.count(".") else b"-", symbol.value
            if not target:
                role = symbol.name.encode()  # not in this file: vprintf, malloc
        addend = entry[2] if section.kind == _RELA else 0
        entries.append(struct.pack("<QIQq", where, info & 0xFFFFFFFF, place, addend) + role)
    return b"relocations" + b"".join(entries), called
