"""One program on one case in one configuration: outcome and statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Status = Literal[
    "ok",
    "compile_error",
    "out_of_bounds",
    "race",
    "uninitialised_read",
    "barrier_divergence",
    "deadlock",
    "misaligned",
    "trap",
    "timeout",
    "crash",
    "host_differs",
    "infrastructure",
]
Schedule = Literal["gpu", "forward", "reverse", "random", "warp_greedy"]
SCHEDULES: tuple[Schedule, ...] = ("gpu", "forward", "reverse", "random", "warp_greedy")
Fill = Literal["poison", "stale", "nan"]
"""What elements hold that no kernel has written: poison (0xFF bytes), or what an allocator would have left; nan: poison, and so does the memory around every buffer, where it
otherwise holds numbers that a factor of zero hides. A GPU has the first two."""
FILLS: tuple[Fill, ...] = ("poison", "stale", "nan")


@dataclass(frozen=True, slots=True)
class Where:
    """Place of a fault, as far as known: thread and block index, 1-based source line, buffer name, byte offset from the buffer's start."""

    thread: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    line: int | None = None
    buffer: str | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened. `seconds`: CPU time of the execution; `message`: one line for people."""

    status: Status
    where: Where = Where()
    message: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Configuration:
    """How a case is executed."""

    schedule: Schedule = "gpu"
    schedule_seed: int = 1
    fill: Fill = "poison"
    checked: bool = False


@dataclass(frozen=True, slots=True)
class Execution:
    """`statistics`: the named numbers from which judges decide (`numerics.statistics` defines them; empty unless the outcome is ok).
    `output_hash`: 16 hex digits over the bytes of all outputs. `hazards`: faults that a finished plain run proves although no output shows them
    (a red zone or an input overwritten, barriers that threads meet apart), as "out_of_bounds: what happened"."""

    case_id: str
    configuration: Configuration
    outcome: Outcome
    statistics: Mapping[str, float] = field(default_factory=dict)
    output_hash: str = ""
    hazards: tuple[str, ...] = ()
