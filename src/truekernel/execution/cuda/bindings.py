"""A case on the device: where its buffers lie, its launches with all arguments in place, the tables that surround an execution.

Standard library only; runs in the worker process.
"""

from __future__ import annotations

import struct
from ctypes import Array, c_void_p
from dataclasses import dataclass
from typing import Any

from truekernel.execution.cuda.address_space import STEP
from truekernel.execution.cuda.device_memory import POISON_BYTE, Memory, Range, Table, padded, zone_byte, zones
from truekernel.execution.cuda.driver import parameters

ARRIVED = 0x7C5A_1E0F_93D2_B846
"""Follows the results of an execution: when the host has it, it has them all."""


@dataclass(frozen=True, slots=True)
class BoundLaunch:
    """A launch with its arguments; `alive` holds their bytes."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    cooperative: bool
    stream: int
    parameters: Array[c_void_p]
    alive: object


@dataclass(frozen=True, slots=True)
class Copy:
    """Bytes to copy on the device before an execution, again from the start of the source when it is shorter."""

    target: int
    source: int
    nbytes: int
    source_bytes: int


@dataclass(slots=True)
class Binding:
    """A case at fixed addresses.

    `fills`: table for each fill ("poison", "stale"); `copies`: likewise. `checks`: red zones; `owners`: (buffer, behind it?) of each.
    `hashed`: read-only inputs, then outputs; `watched`: (buffer, hash that it must keep) of the former.
    """

    generation: int
    addresses: tuple[int, ...]
    launches: tuple[BoundLaunch, ...]
    fills: dict[str, Table]
    copies: dict[str, tuple[Copy, ...]]
    checks: Table
    owners: tuple[tuple[int, bool], ...]
    hashed: Table
    watched: tuple[tuple[int, int], ...]
    results: int
    sink: bool = False
    """Whether the last of `hashed` is the sink."""

    @property
    def result_words(self) -> int:
        """8-byte words of results: one for each red zone, one for each hash."""
        return len(self.checks.ranges) + len(self.hashed.ranges)

    def release(self, memory: Memory) -> None:
        """Free tables and results."""
        for table in (*self.fills.values(), self.checks, self.hashed):
            memory.free_table(table)
        memory.scratch.free(self.results)


def arena_bytes(case: dict[str, Any]) -> int:
    """Bytes that a case's own buffers take, red zones included. Inputs that nothing writes lie in blobs instead."""
    return sum(padded(b["nbytes"]) for b in case["buffers"] if b["role"] != "input")


def bind(case: dict[str, Any], memory: Memory) -> Binding:
    """Lay a case out (see `wire_cases.case_message` for its form)."""
    arena = memory.arena(arena_bytes(case))
    buffers = case["buffers"]
    addresses: list[int] = []
    checks: list[tuple[Range, tuple[int, bool]]] = []
    always: list[Range] = []
    for number, buffer in enumerate(buffers):
        if buffer["role"] == "input":
            blob = memory.blobs[buffer["content"]]
            around = blob.zones
            addresses.append(blob.address)
        else:
            around = zones(arena, buffer["nbytes"], zone_byte(number))
            addresses.append(around[0].address + around[0].nbytes)
            always += around
            arena += padded(buffer["nbytes"])
        checks += [(around[0], (number, False)), (around[1], (number, True))]
    watched = [n for n, b in enumerate(buffers) if b["role"] == "input" and b["nbytes"]]
    outputs = [(k, n) for k, n in enumerate(case["outputs"]) if buffers[n]["nbytes"]]
    checks_table = memory.table(range_ for range_, _ in checks)
    ranges = [Range(addresses[n], buffers[n]["nbytes"], number=k) for k, n in (*((0, n) for n in watched), *outputs)]
    if memory.space is not None:
        ranges.append(Range(memory.space.sink, STEP))
    hashed = memory.table(ranges)
    fills, copies = _contents(buffers, addresses, memory, always)
    words = len(checks_table.ranges) + len(hashed.ranges)
    results = memory.scratch.put(bytes(8 * words) + struct.pack("<Q", ARRIVED))
    return Binding(
        generation=memory.generation,
        addresses=tuple(addresses),
        launches=tuple(_launch(launch, addresses) for launch in case["launches"]),
        fills=fills,
        copies=copies,
        checks=checks_table,
        owners=tuple(owner for _, owner in checks),
        hashed=hashed,
        watched=tuple((n, memory.blobs[buffers[n]["content"]].digest) for n in watched),
        results=results,
        sink=memory.space is not None,
    )


def _contents(
    buffers: list[dict[str, Any]], addresses: list[int], memory: Memory, always: list[Range]
) -> tuple[dict[str, Table], dict[str, tuple[Copy, ...]]]:
    """What buffers hold when an execution begins, for each fill."""
    zeros = [Range(addresses[n], b["nbytes"], 0) for n, b in enumerate(buffers) if b["role"] == "zeros"]
    copied = [_copy(addresses[n], b, memory, "content") for n, b in enumerate(buffers) if b["role"] == "mutable"]
    empty = [n for n, b in enumerate(buffers) if b["role"] == "empty" and b["nbytes"]]
    poison = [Range(addresses[n], buffers[n]["nbytes"], POISON_BYTE) for n in empty]
    bare = [r for n, r in zip(empty, poison, strict=True) if not buffers[n].get("stale")]
    stale = [_copy(addresses[n], buffers[n], memory, "stale") for n in empty if buffers[n].get("stale")]
    fills = {"poison": memory.table([*always, *zeros, *poison]), "stale": memory.table([*always, *zeros, *bare])}
    return fills, {"poison": tuple(copied), "stale": (*copied, *stale)}


def _copy(address: int, buffer: dict[str, Any], memory: Memory, key: str) -> Copy:
    blob = memory.blobs[buffer[key]]
    return Copy(address, blob.address, buffer["nbytes"], blob.nbytes)


def _launch(launch: dict[str, Any], addresses: list[int]) -> BoundLaunch:
    values = [
        struct.pack("<Q", (addresses[a[1]] + a[2]) & (2**64 - 1)) if a[0] == "buffer" else bytes.fromhex(a[1])
        for a in launch["args"]
    ]
    array, alive = parameters(values)
    return BoundLaunch(
        launch["kernel"],
        tuple(launch["grid"]),
        tuple(launch["block"]),
        launch["shared"],
        launch["cooperative"],
        launch["stream"],
        array,
        alive,
    )
