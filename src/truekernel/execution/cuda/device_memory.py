"""Device memory of a worker: blobs that stay, and one arena in which the buffers of the case at hand lie between red zones.

Standard library only; runs in the worker process.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Sequence
from ctypes import c_void_p
from dataclasses import dataclass, field

from truekernel.execution.cuda.address_space import STEP, Region, Space
from truekernel.execution.cuda.driver import OUT_OF_MEMORY, Driver, DriverError, parameters
from truekernel.execution.cuda.scratch import Scratch

ZONE = 16 * 1024
"""Bytes of the red zone on either side of every buffer."""
ZONE_BYTES = (0x40, 0x41, 0x42, 0x43)
"""What red zones hold, from buffer to buffer by turns, as slack on a CPU does (simt/native/arena.cpp): what strays there reads the same on both."""
POISON_BYTE = 0xFF
ALIGNMENT = 512
"""What cuMemAlloc aligns to, or more."""
_RANGE = struct.Struct("<QQII")
_THREADS = 256
_MOST_BLOCKS = 1024


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes on the device, the value that they are to have, and the number of the output that they hold."""

    address: int
    nbytes: int
    value: int = 0
    number: int = 0


@dataclass(slots=True)
class _Block:
    """Memory that several blobs lie in, given back with the last of them."""

    base: int
    blobs: int


@dataclass(slots=True)
class Blob:
    """Content that several cases share and that no kernel may change: inputs, references, stale contents. `digest`: its hash on the device."""

    base: int
    nbytes: int
    block: _Block
    zone_byte: int
    digest: int = 0

    @property
    def address(self) -> int:
        """Where the content begins."""
        return self.base + ZONE

    @property
    def zones(self) -> tuple[Range, Range]:
        """The red zones around it."""
        return zones(self.base, self.nbytes, self.zone_byte)


def zones(base: int, nbytes: int, value: int) -> tuple[Range, Range]:
    """Red zones of a buffer whose front zone begins at `base`, of bytes `value`; the one behind begins right after its last byte."""
    end = base + ZONE + nbytes
    return Range(base, ZONE, value), Range(end, padded(nbytes) - ZONE - nbytes, value)


def zone_byte(number: int) -> int:
    """What the red zones of a plan's buffer hold, by its number."""
    return ZONE_BYTES[number % len(ZONE_BYTES)]


def padded(nbytes: int) -> int:
    """Bytes that a buffer takes with its red zones."""
    return ZONE + -(-nbytes // ALIGNMENT) * ALIGNMENT + ZONE


@dataclass(slots=True)
class Table:
    """Ranges as the support kernels read them. `address`: 0 when there are none."""

    ranges: tuple[Range, ...]
    address: int = 0
    largest: int = field(init=False)

    def __post_init__(self) -> None:
        self.largest = max((r.nbytes for r in self.ranges), default=0)


class Memory:
    """Allocates, fills, checks and hashes device memory with the support kernels."""

    def __init__(self, driver: Driver, support: bytes, device: int = 0) -> None:
        self.driver = driver
        self.scratch = Scratch(driver)
        self.space = _space(driver, device)
        self._module = driver.load(support)
        self._kernels = {
            name: driver.function(self._module, name) for name in ("tk_fill", "tk_check", "tk_hash", "tk_probe")
        }
        self.sink_digest = self.hashes([Range(self.space.sink, STEP)])[0] if self.space is not None else 0
        self.blobs: dict[str, Blob] = {}
        self._arena, self._arena_bytes = 0, 0
        self._resident: tuple[list[str], Table, int] | None = None
        self._seen, self._seen_words, self._looked = 0, 0, False
        self.generation = 0
        """Counts the arenas: tables with addresses in an older one are void."""

    # ---------------------------------------------------------------- allocation

    def add_blobs(self, names: Sequence[str], sizes: Sequence[int], content: bytearray) -> None:
        """Keep the parts of `content`, of `sizes` bytes each, on the device under `names` (see `wire_cases.content_name`); all of them or, with a DriverError, none."""
        self._forget_resident()
        total = sum(padded(size) for size in sizes)
        block = _Block(self._take(self.space.resident if self.space else None, total), len(sizes))
        blobs: list[Blob] = []
        image = bytearray(total)
        at, place = 0, 0
        for name, size in zip(names, sizes, strict=True):
            blob = Blob(block.base + place, size, block, zone_byte(int(name.partition(":")[2] or 0)))
            blobs.append(blob)
            image[place : place + padded(size)] = bytes([blob.zone_byte]) * padded(size)
            image[place + ZONE : place + ZONE + size] = memoryview(content)[at : at + size]
            at, place = at + size, place + padded(size)
        try:
            self.driver.upload(block.base, image)
            for blob, digest in zip(blobs, self.hashes([Range(b.address, b.nbytes) for b in blobs]), strict=True):
                blob.digest = digest
        except BaseException:
            self._give(block.base)
            raise
        self.blobs.update(zip(names, blobs, strict=True))

    def drop_blob(self, name: str) -> None:
        """Free a blob."""
        blob = self.blobs.pop(name, None)
        if blob is not None:
            self._forget_resident()
            blob.block.blobs -= 1
            if not blob.block.blobs:
                self._give(blob.block.base)

    def arena(self, nbytes: int) -> int:
        """Address of an arena of `nbytes` or more; it moves when it has to grow."""
        if nbytes > self._arena_bytes:
            if self._arena:
                self._give(self._arena)
                self._arena, self._arena_bytes = 0, 0
            self.generation += 1
            wanted = max(nbytes, STEP) if self.space else nbytes
            self._arena = self._take(self.space.arena if self.space else None, wanted)
            self._arena_bytes = wanted
        return self._arena

    def _take(self, region: Region | None, nbytes: int) -> int:
        """Memory in a region, else (too large for it, or none there) anywhere."""
        address = region.allocate(nbytes) if region is not None else None
        return self.driver.allocate(nbytes) if address is None else address

    def _give(self, address: int) -> None:
        for region in (self.space.resident, self.space.arena) if self.space else ():
            if region.owns(address):
                region.free(address)
                return
        self.driver.free(address)

    def table(self, ranges: Iterable[Range]) -> Table:
        """A table that is on the device when a support kernel needs it; ranges of no bytes are left out."""
        table = Table(tuple(r for r in ranges if r.nbytes))
        if table.ranges:
            packed = b"".join(_RANGE.pack(r.address, r.nbytes, r.value, r.number) for r in table.ranges)
            table.address = self.scratch.put(packed)
        return table

    def free_table(self, table: Table) -> None:
        """Free a table."""
        if table.address:
            self.scratch.free(table.address)
            table.address = 0

    # ---------------------------------------------------------------- support kernels

    def fill(self, table: Table, *, once: bool = False) -> None:
        """Give every range its value; `once`: wait, and free the table."""
        if table.ranges:
            self._launch("tk_fill", (_blocks(table.largest), len(table.ranges)), _THREADS, [_pointer(table.address)])
        if once:
            self.driver.call("cuCtxSynchronize")
            self.free_table(table)

    def check(self, table: Table, found: int) -> None:
        """Write 8 bytes for each range to the device address `found`: position of its first wrong byte, or all ones."""
        if table.ranges:
            self._launch("tk_check", (len(table.ranges), 1), 1024, [_pointer(table.address), _pointer(found)])

    def hash(self, table: Table, sums: int) -> None:
        """Write 8 bytes for each range to the device address `sums`: the sum of its words, as in `numerics.digest`."""
        if table.ranges:
            self.driver.call("cuMemsetD8Async", sums, 0, 8 * len(table.ranges), None)
            grid = (_blocks(table.largest), len(table.ranges))
            self._launch("tk_hash", grid, _THREADS, [_pointer(table.address), _pointer(sums)])

    def hashes(self, ranges: Sequence[Range]) -> list[int]:
        """Hashes of ranges, now; 0 for those without bytes."""
        table = self.table(ranges)
        sums = self.scratch.put(bytes(8 * max(len(table.ranges), 1)))
        try:
            self.hash(table, sums)
            values = iter(struct.unpack(f"<{len(table.ranges)}Q", self.driver.download(sums, 8 * len(table.ranges))))
        finally:
            self.free_table(table)
            self.scratch.free(sums)
        return [next(values) if r.nbytes else 0 for r in ranges]

    def changed(self) -> str | None:
        """What of the resident content is not as it was put there: the name of a blob, None when all is well."""
        self.look()
        return self.found_changed()

    def prepare_look(self) -> None:
        """Have what `look` needs: once something runs, getting it would wait for that."""
        if self._resident is None:
            names = [name for name, blob in self.blobs.items() if blob.nbytes]
            table = self.table(Range(self.blobs[name].address, self.blobs[name].nbytes) for name in names)
            self._resident = names, table, self.scratch.put(bytes(8 * max(len(names), 1)))
            if len(names) > self._seen_words:
                self._seen_words = max(1024, 2 * len(names))
                self._seen = self.driver.host_memory(8 * self._seen_words)

    def look(self) -> None:
        """Have all resident content hashed after what was launched before; once that has run, `found_changed` knows."""
        self.prepare_look()
        assert self._resident is not None
        names, table, sums = self._resident
        self.hash(table, sums)
        if names:
            self.driver.call("cuMemcpyDtoHAsync_v2", self._seen, sums, 8 * len(names), None)
        self._looked = True

    def found_changed(self) -> str | None:
        """As `changed`, of the last `look`; looks now where there was none, or contents have come or gone since."""
        if self._resident is None or not self._looked:
            return self.changed()
        self._looked = False
        self.driver.call("cuCtxSynchronize")  # results of executions arrive before what was launched after them has run
        names = self._resident[0]
        found = struct.unpack(f"<{len(names)}Q", ctypes.string_at(self._seen, 8 * len(names))) if names else ()
        return next((n for n, digest in zip(names, found, strict=True) if digest != self.blobs[n].digest), None)

    def _forget_resident(self) -> None:
        """Blobs come or go: `changed` makes its table anew."""
        if self._resident is not None:
            self.free_table(self._resident[1])
            self.scratch.free(self._resident[2])
            self._resident = None

    def mend(self, table: Table) -> list[str]:
        """Put back the red zones in `table`, those of all blobs, and the sink; names of blobs that had changed, which are gone now."""
        self.fill(table)
        self.fill(self.table(zone for blob in self.blobs.values() for zone in blob.zones), once=True)
        if self.space is not None:
            self.space.refill()
        spoiled: list[str] = []
        while (name := self.changed()) is not None:
            spoiled.append(name)
            self.drop_blob(name)
        return spoiled

    def probe(self) -> bool:
        """Whether the device computes what it should: `tk_probe` of native/support.cu against the same arithmetic here."""
        blocks = 8
        out = self.scratch.put(bytes(4 * 256 * blocks))
        try:
            self._launch("tk_probe", (blocks, 1), 256, [_pointer(out)])
            got = struct.unpack(f"<{256 * blocks}I", self.driver.download(out, 4 * 256 * blocks))
        finally:
            self.scratch.free(out)
        return got == tuple(probe_value(block, thread) for block in range(blocks) for thread in range(256))

    def _launch(self, kernel: str, grid: tuple[int, int], threads: int, arguments: Sequence[bytes]) -> None:
        self.scratch.send()
        addresses, _alive = parameters(arguments)
        self.driver.launch(self._kernels[kernel], (*grid, 1), (threads, 1, 1), addresses)

    def kernel(self, symbol: str) -> c_void_p:
        """A support kernel."""
        return self._kernels[symbol]


def _space(driver: Driver, device: int) -> Space | None:
    """The address space with its sink; None where the device or its driver has no such memory."""
    try:
        return Space(driver, device)
    except DriverError as error:
        if error.code == OUT_OF_MEMORY:
            raise
        return None


def probe_value(block: int, thread: int) -> int:
    """What `tk_probe` writes for a thread."""
    mixed = ((block * 256 + 255 - thread) * 2654435761) & 0xFFFFFFFF
    return mixed ^ int.from_bytes(struct.pack("<f", thread * 0.5 + block), "little")


def _pointer(address: int) -> bytes:
    return struct.pack("<Q", address)


def _blocks(nbytes: int) -> int:
    return max(1, min(_MOST_BLOCKS, -(-nbytes // (_THREADS * 64))))
