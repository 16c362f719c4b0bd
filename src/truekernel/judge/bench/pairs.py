"""Blocks of two timing processes in turn, A B B A, over fresh pairs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median

from truekernel.judge.bench.conditions import Conditions, Meter, rejected
from truekernel.judge.bench.timers import Timer

BLOCK_SECONDS = 2e-3
"""Time of the calls of one block that is aimed at: far above what a clock can't resolve, far below what changes the temperature."""
LEAST_CALLS, MOST_CALLS = 4, 512
REPEATS = 5
"""Samples of a block."""
ROUNDS = 2
"""Of A B B A in one pair."""

Start = Callable[[], Timer]


@dataclass(frozen=True, slots=True)
class Block:
    """Samples of one block. `side`: number of the process in the pair; seconds a call by the device's clock and by the process's; `rejected`: why they don't count, "" where they do."""

    pair: int
    side: int
    device: tuple[float, ...]
    wall: tuple[float, ...]
    conditions: Conditions
    rejected: str = ""


@dataclass(slots=True)
class Sides:
    """What was measured of two sides."""

    blocks: list[Block] = field(default_factory=list)
    log_ratios: list[float] = field(default_factory=list)
    """Of each pair with samples on both sides: logarithm of the first side's time over the second's."""

    def times(self, side: int, clock: str = "device") -> list[float]:
        """All samples that count."""
        return [t for b in self.blocks if b.side == side and not b.rejected for t in getattr(b, clock)]


def calls_of(timer: Timer) -> int:
    """Calls of a block, from how long a few take."""
    timer.time(LEAST_CALLS, 1)
    device, _ = timer.time(LEAST_CALLS, 3)
    each = max(median(device), 1e-7)
    return max(LEAST_CALLS, min(MOST_CALLS, math.ceil(BLOCK_SECONDS / each)))


def measure(
    starts: Sequence[Start],
    pairs: int,
    meter: Meter,
    *,
    rotating: bool = True,
    after: Callable[[int, int, Timer, int], None] | None = None,
) -> Sides:
    """Time two sides in `pairs` pairs of fresh processes, whose first alternates. `after(pair, side, timer, calls)` is called when a pair has been timed, before its processes end;
    so many calls followed each other, each on another copy as long as there are."""
    found = Sides()
    calls: dict[int, int] = {}
    for pair in range(pairs):
        with ExitStack() as stack:
            timers = [stack.enter_context(start()) for start in starts]
            for side, timer in enumerate(timers):
                timer.ready()
                if side not in calls:
                    calls[side] = calls_of(timer)
                timer.ask({"poison": True})
                timer.time(calls[side], 1, rotating=rotating)
            for side in _order(pair):
                device, wall = timers[side].time(calls[side], REPEATS, rotating=rotating)
                found.blocks.append(Block(pair, side, tuple(device), tuple(wall), meter.read()))
            if after is not None:
                for side, timer in enumerate(timers):
                    after(pair, side, timer, 2 * calls[side])
    why = rejected([block.conditions for block in found.blocks])
    found.blocks = [
        Block(b.pair, b.side, b.device, b.wall, b.conditions, text) for b, text in zip(found.blocks, why, strict=True)
    ]
    for pair in range(pairs):
        sides = [_logarithms(found.blocks, pair, side) for side in (0, 1)]
        if all(sides):
            found.log_ratios.append(math.fsum(sides[0]) / len(sides[0]) - math.fsum(sides[1]) / len(sides[1]))
    return found


def _order(pair: int) -> Iterator[int]:
    first = pair % 2
    for _ in range(ROUNDS):
        yield from (first, 1 - first, 1 - first, first)


def _logarithms(blocks: Sequence[Block], pair: int, side: int) -> list[float]:
    """Of the median of each block that counts."""
    wanted = [b for b in blocks if b.pair == pair and b.side == side and not b.rejected]
    return [math.log(m) for b in wanted if (m := median(b.device)) > 0]
