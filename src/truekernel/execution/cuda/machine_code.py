"""Cubins as ELF files: what of a kernel's machine code makes it the kernel that it is.

Names, line tables and the order of symbols do not count; instructions, constants, shared and local memory, parameters and launch bounds do.
Layout of ELF: "Tool Interface Standard (TIS) Executable and Linking Format (ELF) Specification", version 1.2. Sections of a kernel K, as in NVIDIA's "CUDA
Binary Utilities": .text.K, .nv.constant<bank>.K, .nv.shared.K, .nv.info.K, and .rel(a).text.K.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from truekernel.errors import MachineError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMTAB, _NOBITS, _RELA, _REL = 2, 8, 4, 9
_CONSTANT = re.compile(r"\.nv\.constant(\d+)(?:\.|$)")
_OWNED = re.compile(r"\.(?:rela?\.)?(?:text|nv\.constant\d+|nv\.shared|nv\.local|nv\.info)\.")
_VARIABLES = ".nv.global"
_RESERVED = 1024
"""Bytes of shared memory that the system keeps for itself; a kernel without any of its own has them noted when another of the file does."""
_OF_HEADERS = re.compile(r"cuda3std|cooperative_groups|\d__nv_|^__nv_")
_DIGITS = re.compile(r"\d+")
_CONSTANTS = ".nv.constant3"
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


@dataclass(frozen=True)
class Cubin:
    """A parsed cubin."""

    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    def section(self, name: str) -> Section | None:
        """The section of that name."""
        return self._by_name.get(name)

    def of(self, function: str) -> list[Section]:
        """Sections that belong to a function, in the order of the file."""
        return self._by_function.get(function, [])

    @cached_property
    def _by_name(self) -> dict[str, Section]:
        return {section.name: section for section in reversed(self.sections)}

    @cached_property
    def _by_function(self) -> dict[str, list[Section]]:
        found: dict[str, list[Section]] = defaultdict(list)
        for section in self.sections:
            owned = _OWNED.match(section.name)
            if owned:
                found[section.name[owned.end() :]].append(section)
        return found


@lru_cache(maxsize=8)
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


@dataclass(frozen=True, slots=True)
class Variable:
    """A global variable: its name without namespaces, bytes, and what they hold at first."""

    name: str
    size: int
    content: bytes


def code_hash(cubin: bytes, symbols: Iterable[str], space: str = "") -> str:
    """16 hex digits over the machine code of the kernels `symbols`, in that order, of all that they call, and of the variables of `space`."""
    parsed = parse(cubin)
    digest = hashlib.sha256()
    for part in _parts(parsed, symbols):
        digest.update(len(part).to_bytes(8, "little") + part)
    for variable in sorted(variables(cubin, space), key=lambda v: v.name):
        digest.update(repr(variable).encode())
    for section in parsed.sections:
        if section.name.startswith(_CONSTANTS):
            digest.update(_plain(section))
    return digest.hexdigest()[:16]


def variables(cubin: bytes, space: str = "") -> list[Variable]:
    """Global variables of the source in namespace `space`; all that headers do not bring, when there is none."""
    parsed = parse(cubin)
    found = []
    for symbol in parsed.symbols:
        home = parsed.sections[symbol.section] if symbol.section < len(parsed.sections) else None
        if home is None or not home.name.startswith(_VARIABLES) or symbol.name.startswith("."):
            continue
        if space in symbol.name if space else not _OF_HEADERS.search(symbol.name):
            content = home.data[symbol.value : symbol.value + symbol.size]
            found.append(Variable(_plain_name(symbol.name), symbol.size, content))
    return found


def has_constants(cubin: bytes) -> bool:
    """Whether there are `__constant__` variables, which code reaches without a symbol."""
    return any(section.name.startswith(_CONSTANTS) for section in parse(cubin).sections)


def _plain_name(symbol: str) -> str:
    """The last name in a mangled one, which precedes each name by its length."""
    for at in range(len(symbol)):
        digits = _DIGITS.match(symbol, at)
        if digits:
            rest = symbol[digits.end() :]
            if rest[int(digits[0]) :] in ("", "E") and len(rest) >= int(digits[0]):
                return rest[: int(digits[0])]
    return symbol


def _parts(cubin: Cubin, kernels: Iterable[str]) -> Iterator[bytes]:
    """Bytes that identify kernels and what they call."""
    queue = list(kernels)
    for name in queue:
        if cubin.section(f".text.{name}") is None:
            raise MachineError(f"the compiler's machine code has no kernel '{name}'")
    seen: set[str] = set()
    while queue:
        name = queue.pop(0)
        code = cubin.section(f".text.{name}")
        if name in seen or code is None:
            continue
        seen.add(name)
        yield code.data
        for section in cubin.of(name):
            constant = _CONSTANT.match(section.name)
            if constant:
                yield b"constant" + constant[1].encode() + _plain(section)
            elif section.name == f".nv.shared.{name}" and section.size == _RESERVED:
                continue
            elif section.name in (f".nv.shared.{name}", f".nv.local.{name}"):
                yield section.name[:10].encode() + _plain(section)
            elif section.name == f".nv.info.{name}":
                yield b"info" + b"".join(_attributes(section.data))
            elif section.kind in (_REL, _RELA):
                part, called = _relocations(cubin, section, name)
                queue += called
                yield part


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
