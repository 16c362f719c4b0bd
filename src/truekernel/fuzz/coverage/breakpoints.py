"""One-shot breakpoints at the entries of functions: the native part (`native/breakpoints.c`), compiled once, and the memory that it shares.

All runs of a library's code in a family of forked processes count together: a function is written down by whichever process enters it first. The
process that makes the breakpoints is not slowed and enters nothing; those that it forks and that call `map` are watched, and so are theirs.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from truekernel.errors import BadInputError, MachineError
from truekernel.execution.simt.cache import built_once, digest
from truekernel.execution.simt.processes import run_tool
from truekernel.execution.simt.toolchain import default_compiler
from truekernel.fuzz.coverage.elf import FunctionTable

_SOURCE = Path(__file__).parent / "native" / "breakpoints.c"
_FLAGS = ("-x", "c", "-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall")
PAGE = mmap.PAGESIZE
NOBODY = 0
"""Owner of what is entered while nobody has called `own`."""

_watching: Breakpoints | None = None


class Breakpoints:
    """Breakpoints in the functions of libraries that this process has loaded. Functions are numbered through: those of the first table come first.

    Needs Linux on x86-64 (MachineError elsewhere), a C compiler, and as much memory as the libraries have code. At most one set is mapped in a process.
    """

    def __init__(self, tables: tuple[FunctionTable, ...]) -> None:
        self.tables = tables
        self._native = _native()
        count = sum(map(len, tables))
        self._firsts = np.cumsum([0, *map(len, tables)])
        log, flags = mmap.mmap(-1, 8 * (count + 1)), mmap.mmap(-1, max(count, 1))
        self._words = np.frombuffer(log, np.uint64)
        self.entered = np.frombuffer(flags, np.uint8)[:count]
        """uint8, 1 for each function that any process of the family has entered; in shared memory."""
        self._regions = [_Region(self._native, table) for table in tables]
        self.armed = sum(region.armed for region in self._regions)
        """How many functions have a breakpoint: all but those that something else had patched before."""

    def map(self) -> None:
        """Watch this process, and those that it forks from now on. Call it before threads are started."""
        global _watching  # noqa: PLW0603 - of a process, as its signal handler is
        if _watching is self:
            return
        if _watching is not None:
            raise MachineError("this process is watched already: make one source for all libraries")
        self._native.tk_share(self._words.ctypes.data, self.entered.ctypes.data, len(self.entered))
        for region, first in zip(self._regions, self._firsts, strict=False):
            number = self._native.tk_region(*region.arguments(), int(first))
            if number < 0:
                raise MachineError(f"{len(self.tables)} libraries are more than can be watched: name at most 8")
            if self._native.tk_map(number, region.file):
                raise MachineError(
                    f"the system does not let the code of {region.table.path.name} be replaced: run without coverage"
                )
        _watching = self

    def own(self, owner: int) -> None:
        """Write down that `owner` (below 2**31; NOBODY for none) enters what this process enters from now on."""
        self._native.tk_owner(owner)

    @property
    def logged(self) -> int:
        """How many first entries the whole family has written down."""
        return min(int(self._words[0]), len(self._words) - 1)

    def log(self, start: int, owner: int, end: int | None = None) -> list[int]:
        """The functions that `owner` entered first, in that order, from place `start` of the log on (to place `end`)."""
        entries = self._words[1 + start : 1 + (self.logged if end is None else end)]
        numbers = (entries & np.uint64(0xFFFFFFFF)).astype(np.int64) - 1
        # A process that goes wild may write here too: only what can be a function is believed.
        mine = (entries >> np.uint64(32) == owner) & (numbers >= 0) & (numbers < len(self.entered))
        return [int(number) for number in numbers[mine]]

    def disarm(self, functions: npt.ArrayLike) -> None:
        """Take away the breakpoints of `functions`, as if they had been entered before."""
        self._write(np.asarray(functions, np.int64), armed=False)

    def rearm(self, functions: npt.ArrayLike | None = None) -> None:
        """Put the breakpoints of `functions`, by default of all, back, so that their next entry is written down again. No process should be running a case."""
        chosen = np.flatnonzero(self.entered) if functions is None else np.asarray(functions, np.int64)
        self._write(chosen, armed=True)
        if functions is None:
            self._words[:] = 0

    def name(self, function: int) -> str:
        """The demangled name of a function, or its mangled one where that can't be read."""
        number = int(np.searchsorted(self._firsts, function, side="right")) - 1
        return demangled(self.tables[number].symbol(function - int(self._firsts[number])))

    def __len__(self) -> int:
        return len(self.entered)

    def _write(self, functions: npt.NDArray[np.int64], *, armed: bool) -> None:
        functions = np.unique(functions[(functions >= 0) & (functions < len(self.entered))])
        functions = functions[self.entered[functions] == armed]
        for region, first, end in zip(self._regions, self._firsts, self._firsts[1:], strict=False):
            region.write(functions[(functions >= first) & (functions < end)] - first, armed)
        self.entered[functions] = not armed


class _Region:
    """The watched code of one library: a file in memory that holds it with breakpoints, and what tells them apart."""

    def __init__(self, native: ctypes.CDLL, table: FunctionTable) -> None:
        self.table = table
        base = load_address(table.path)
        first = base + int(table.addresses[0]) // PAGE * PAGE
        self._start = first
        self._length = base + (int(table.addresses[-1]) // PAGE + 1) * PAGE - first
        if self._length >= 1 << 32:
            raise BadInputError(f"{table.path.name} has more than 4 GiB of code: coverage can't watch it")
        self._offsets = (table.addresses + (base - first)).astype(np.uint32)
        self._original = table.first_bytes.copy()
        self.file = _memory_file(table.path.name, self._length)
        with mmap.mmap(self.file, self._length) as view:
            copy = np.frombuffer(view, np.uint8)
            self.armed = int(native.tk_copy(*self._place(), copy.ctypes.data, *self._entries()))
            del copy

    def arguments(self) -> tuple[Any, ...]:
        return (*self._place(), *self._entries())

    def write(self, functions: npt.NDArray[np.int64], armed: bool) -> None:
        for number in functions:
            original = int(self._original[number])
            byte = 0xCC if armed else original
            os.pwrite(self.file, bytes((byte,)), int(self._offsets[number]))

    def _place(self) -> tuple[int, int]:
        return self._start, self._length

    def _entries(self) -> tuple[int, int, int]:
        return self._offsets.ctypes.data, self._original.ctypes.data, len(self._offsets)


def load_address(path: Path) -> int:
    """Where this process has loaded the library `path`. Raises BadInputError when it has not."""
    wanted = path.resolve()
    for line in Path("/proc/self/maps").read_text().splitlines():
        parts = line.split(maxsplit=5)
        if (
            len(parts) == 6
            and int(parts[2], 16) == 0
            and Path(parts[5]).name == wanted.name
            and Path(parts[5]).resolve() == wanted
        ):
            return int(parts[0].split("-")[0], 16)
    raise BadInputError(f"{path} is not loaded: import the library before its coverage is asked for")


@lru_cache(maxsize=1)
def _demangler() -> Any:
    for name in ("libstdc++.so.6", "libc++abi.so.1"):
        try:
            function = ctypes.CDLL(name).__cxa_demangle
        except (OSError, AttributeError):
            continue
        function.restype = ctypes.c_void_p
        function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        return function
    return None


def demangled(symbol: str) -> str:
    """A C++ symbol as it is written in source; what is none stays as it is. Clones ("[clone .cold]") keep their mark."""
    function = _demangler()
    if function is None or not symbol.startswith("_Z"):
        return symbol
    got = function(symbol.encode(), None, None, None)
    if not got:
        return symbol
    text = ctypes.string_at(got).decode(errors="replace")
    libc = ctypes.CDLL(None)
    libc.free.argtypes = [ctypes.c_void_p]
    libc.free(got)
    return text


def _memory_file(name: str, length: int) -> int:
    """A file descriptor of shared memory that may hold code."""
    for flags in (
        os.MFD_CLOEXEC | 0x10,
        os.MFD_CLOEXEC,
    ):  # 0x10: MFD_EXEC, of Linux 6.3; older ones refuse it and need none
        try:
            file = os.memfd_create(name, flags)
        except OSError:
            continue
        os.ftruncate(file, length)
        return file
    with tempfile.TemporaryFile() as unnamed:
        os.ftruncate(unnamed.fileno(), length)
        return os.dup(unnamed.fileno())


@lru_cache(maxsize=1)
def _native() -> ctypes.CDLL:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise MachineError(
            f"coverage of native functions needs Linux on x86-64, this is {sys.platform} on {platform.machine()}"
        )
    compiler = default_compiler()

    def build(folder: Path) -> None:
        command = [*compiler.command, *_FLAGS, str(_SOURCE), "-o", str(folder / "breakpoints.so")]
        status, text = run_tool(command)
        if status:
            lines = [line for line in text.splitlines() if "error" in line] or [text.strip()]
            raise MachineError(f"{compiler.label} can't build the coverage of native functions: {lines[0]}")

    name = digest(_SOURCE.read_text(), compiler.path, compiler.version, *_FLAGS)
    library = ctypes.CDLL(str(built_once(f"breakpoints-{name}", build) / "breakpoints.so"))
    pointer, size = ctypes.c_void_p, ctypes.c_uint64
    library.tk_share.argtypes = [pointer, pointer, size]
    library.tk_copy.argtypes = [pointer, size, pointer, pointer, pointer, size]
    library.tk_copy.restype = ctypes.c_int64
    library.tk_region.argtypes = [pointer, size, pointer, pointer, size, ctypes.c_uint32]
    library.tk_map.argtypes = [ctypes.c_int, ctypes.c_int]
    library.tk_owner.argtypes = [ctypes.c_uint32]
    return library
