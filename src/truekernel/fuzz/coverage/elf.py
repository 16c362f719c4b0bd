"""Where the functions of a shared library begin: read from its file, without running anything.

Two tables tell: the symbol table (names; missing in a stripped library) and the unwind tables (`.eh_frame_hdr`; always there in C++, since
exceptions need them). Where both exist an entry must be in both: a symbol alone may stand for data between functions.
Formats: System V ABI, AMD64 supplement; LSB 5.0, chapters 10.6 (`.eh_frame`, `.eh_frame_hdr`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from truekernel.errors import BadInputError
from truekernel.execution.simt.cache import built_once, digest

Addresses = npt.NDArray[np.int64]

_SYMBOL = np.dtype("<u4, u1, u1, <u2, <u8, <u8")
_SYMBOL.names = ("name", "info", "other", "section", "value", "size")
_SECTION = np.dtype("<u4, <u4, <u8, <u8, <u8, <u8, <u4, <u4, <u8, <u8")
_SECTION.names = ("name", "type", "flags", "address", "offset", "size", "link", "info", "align", "entry")
_SEGMENT = np.dtype("<u4, <u4, <u8, <u8, <u8, <u8, <u8, <u8")
_SEGMENT.names = ("type", "flags", "offset", "address", "physical", "file_size", "size", "align")
_LOAD, _NOTE, _UNWIND = 1, 4, 0x6474E550
_EXECUTABLE_SEGMENT, _WRITABLE_SEGMENT = 1, 2
_SYMTAB, _DYNSYM, _EXECUTABLE_SECTION = 2, 11, 4
_FUNCTION = 2
_BUILD_ID = 3
_INDEX_ENCODING = bytes(
    (1, 0x1B, 0x03, 0x3B)
)  # version; pointer, count and table as every linker for x86-64 writes them
FORMAT = 1
"""Of the cached tables; raise it when what is an entry changes."""


@dataclass(frozen=True, slots=True)
class FunctionTable:
    """The functions of one library, by ascending address.

    `addresses`: int64, of their first instruction, relative to where the library is loaded. `first_bytes`: uint8, what the file has there. `names`: int64,
    offsets of their names in the file, -1 for none. `source`: which tables said so, "symbols and unwind tables", "unwind tables" or "symbols".
    """

    path: Path
    identity: str
    addresses: Addresses
    first_bytes: npt.NDArray[np.uint8]
    names: Addresses
    source: str

    def __len__(self) -> int:
        return len(self.addresses)

    def symbol(self, number: int) -> str:
        """The mangled name of function `number`, or "library+0x123" where it has none."""
        offset = int(self.names[number])
        if offset < 0:
            return f"{self.path.name}+{int(self.addresses[number]):#x}"
        with self.path.open("rb") as file:
            file.seek(offset)
            text = b""
            while b"\0" not in text:
                part = file.read(512)
                if not part:
                    break
                text += part
        return text.split(b"\0", 1)[0].decode(errors="replace")

    def containing(self, address: int) -> int:
        """Number of the function whose code `address` (relative to where the library is loaded) belongs to: the last that begins at or before it; -1 for none."""
        return int(np.searchsorted(self.addresses, address, side="right")) - 1


def function_table(path: Path, *, names: bool = True) -> FunctionTable:
    """The functions of the x86-64 library `path`; read once for each build of it and kept in the user's cache.

    `names=False` reads it as if it were stripped. Raises BadInputError for what is no such library or has neither table.
    """
    elf = _Elf(path)
    identity = elf.identity()

    def build(folder: Path) -> None:
        addresses, offsets, source = _entries(elf, names)
        np.save(folder / "addresses.npy", addresses)
        np.save(folder / "names.npy", offsets)
        np.save(folder / "first_bytes.npy", elf.data[elf.file_offsets(addresses)])
        (folder / "source").write_text(source)

    folder = built_once(f"functions-{digest(FORMAT, identity, names)}", build)
    return FunctionTable(
        path,
        identity,
        np.load(folder / "addresses.npy"),
        np.load(folder / "first_bytes.npy"),
        np.load(folder / "names.npy"),
        (folder / "source").read_text(),
    )


def _entries(elf: _Elf, names: bool) -> tuple[Addresses, Addresses, str]:
    """(addresses, offsets of names, source)."""
    unwound = elf.unwound()
    named, offsets = elf.functions() if names else (_none(), _none())
    if len(named) and len(unwound):
        kept = np.isin(named, unwound)
        # A symbol table that names exported functions only (all that stripping leaves) would hide the rest.
        if 2 * kept.sum() > len(unwound):
            return named[kept], offsets[kept], "symbols and unwind tables"
    if len(unwound):
        found = unwound[elf.executable(unwound)]
        at = np.searchsorted(named, found)
        inside = at < len(named)
        known = np.zeros(len(found), bool)
        known[inside] = named[at[inside]] == found[inside]
        labels = np.full(len(found), -1, np.int64)
        labels[known] = offsets[at[known]]
        return found, labels, "unwind tables"
    if len(named):
        return named, offsets, "symbols"
    raise BadInputError(f"{elf.path}: neither a symbol table nor unwind tables: coverage needs one of them")


def _none() -> Addresses:
    return np.zeros(0, np.int64)


class _Elf:
    """The parts of a 64-bit little-endian ELF file that tell where functions are. `data`: the whole file, mapped, as uint8."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.data = np.memmap(path, np.uint8, "r")
        except (OSError, ValueError) as error:
            raise BadInputError(f"{path} can't be read: {error}") from error
        head = bytes(self.data[:64])
        if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", head, 18)[0] != 62:
            raise BadInputError(f"{path} is no x86-64 ELF library: coverage of native functions is for those only")
        segments_at, sections_at = struct.unpack_from("<QQ", head, 32)
        segment_count, _, section_count = struct.unpack_from("<HHH", head, 56)
        self.segments = self._table(_SEGMENT, segments_at, segment_count)
        self.sections = self._table(_SECTION, sections_at, section_count if sections_at else 0)

    def identity(self) -> str:
        """What tells builds of the library apart: the linker's build id, or else size and time of the file; and the file's size, which stripping changes."""
        for note in self.segments[self.segments["type"] == _NOTE]:
            at, end = int(note["offset"]), int(note["offset"] + note["file_size"])
            while at + 12 <= end:
                name_size, size, kind = struct.unpack("<III", self.data[at : at + 12].tobytes())
                start = at + 12 + (name_size + 3) // 4 * 4
                if kind == _BUILD_ID and bytes(self.data[at + 12 : at + 16]) == b"GNU\0":
                    return f"{bytes(self.data[start : start + size]).hex()}-{len(self.data)}"
                at = start + (size + 3) // 4 * 4
        status = self.path.stat()
        return f"{self.path}-{status.st_size}-{status.st_mtime_ns}"

    def file_offsets(self, addresses: Addresses) -> Addresses:
        """Where in the file the bytes of `addresses` are. They must lie in loaded segments."""
        offsets = np.full(len(addresses), -1, np.int64)
        for segment in self.segments[self.segments["type"] == _LOAD]:
            start = int(segment["address"])
            inside = (addresses >= start) & (addresses < start + int(segment["file_size"]))
            offsets[inside] = addresses[inside] - start + int(segment["offset"])
        return offsets

    def executable(self, addresses: Addresses) -> npt.NDArray[np.bool_]:
        """Which addresses lie in code that is never written: in an executable section, or segment where the file has no sections."""
        segments = self.segments[(self.segments["type"] == _LOAD)]
        code = segments[(segments["flags"] & (_EXECUTABLE_SEGMENT | _WRITABLE_SEGMENT)) == _EXECUTABLE_SEGMENT]
        inside = _within(addresses, code)
        sections = self.sections[(self.sections["flags"] & _EXECUTABLE_SECTION) != 0]
        return inside & _within(addresses, sections) if len(sections) else inside

    def functions(self) -> tuple[Addresses, Addresses]:
        """Distinct addresses of the symbols of functions, ascending, and the offsets of their names: of the full table, or the exported ones."""
        for kind in (_SYMTAB, _DYNSYM):
            for section in self.sections[self.sections["type"] == kind]:
                count = int(section["size"]) // _SYMBOL.itemsize
                symbols = self._table(_SYMBOL, int(section["offset"]), count)
                is_function = ((symbols["info"] & 15) == _FUNCTION) & (symbols["section"] != 0) & (symbols["size"] > 0)
                chosen = symbols[is_function]
                addresses, first = np.unique(chosen["value"].astype(np.int64), return_index=True)
                strings = int(self.sections[int(section["link"])]["offset"])
                offsets = chosen["name"].astype(np.int64)[first] + strings
                inside = self.executable(addresses)
                return addresses[inside], offsets[inside]
        return _none(), _none()

    def unwound(self) -> Addresses:
        """Addresses at which the unwind tables' index says that a function begins, ascending; none where there is no index of the usual form."""
        for segment in self.segments[self.segments["type"] == _UNWIND]:
            at, address = int(segment["offset"]), int(segment["address"])
            if bytes(self.data[at : at + 4]) != _INDEX_ENCODING:
                continue
            count = struct.unpack("<I", self.data[at + 8 : at + 12].tobytes())[0]
            if 12 + 8 * count > int(segment["file_size"]):
                continue
            pairs = self._table(np.dtype("<i4"), at + 12, 2 * count).reshape(-1, 2).astype(np.int64) + address
            ordinary = ~self._signal_frames(self.file_offsets(pairs[:, 1]))
            return np.unique(pairs[ordinary, 0])
        return _none()

    def _signal_frames(self, entries: Addresses) -> npt.NDArray[np.bool_]:
        """Which unwind entries (file offsets) describe signal trampolines: those begin one byte before the code."""
        entries = np.where(entries < 0, 0, entries)
        commons = entries + 4 - self._words(entries + 4)
        distinct, which = np.unique(commons, return_inverse=True)
        marked = np.zeros(len(distinct), bool)
        for number, common in enumerate(distinct):
            if 0 <= common < len(self.data) - 32:
                marked[number] = b"S" in bytes(self.data[common + 9 : common + 25]).split(b"\0", 1)[0]
        return marked[which]

    def _words(self, offsets: Addresses) -> Addresses:
        words = np.zeros(len(offsets), np.int64)
        for byte in range(4):
            words |= self.data[offsets + byte].astype(np.int64) << (8 * byte)
        return words

    def _table(self, dtype: np.dtype, offset: int, count: int) -> npt.NDArray:
        if offset + count * dtype.itemsize > len(self.data):
            raise BadInputError(f"{self.path} is cut short: install the library again")
        return np.frombuffer(self.data, dtype, count, offset)


def _within(addresses: Addresses, ranges: npt.NDArray) -> npt.NDArray[np.bool_]:
    inside = np.zeros(len(addresses), bool)
    for part in ranges:
        start = int(part["address"])
        inside |= (addresses >= start) & (addresses < start + int(part["size"]))
    return inside
