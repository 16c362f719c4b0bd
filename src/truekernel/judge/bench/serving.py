"""What timing processes have in common: how many copies take turns, slopes, requests and answers. Standard library alone.

Requests are JSON documents, one a line: {"time": calls, "rotating": bool, "repeats": n} -> {"device": [seconds a call], "wall": [...]}; {"poison": true} -> {};
{"outputs": copy} -> {"files": [...]}; {"bandwidth": true} -> {"bytes_per_s": b}, of those that can tell. An error is answered {"error": text}.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from truekernel.execution.cuda.driver import DriverError

FOOTPRINT = 3
"""All copies together, in sizes of the L2 cache."""
MOST_COPIES = 64
SHARE_OF_MEMORY = 0.4
POISON = 0xFF


class Timed(Protocol):
    """A program, or a baseline, that can be timed."""

    @property
    def hello(self) -> dict[str, Any]:
        """What the parent hears first."""
        ...

    def elapsed(self, calls: int, rotating: bool) -> tuple[float, float]:
        """Seconds of so many calls in a row, by the device's clock and by this process's. `rotating`: each on another copy as long as there are."""
        ...

    def poison(self) -> None:
        """Overwrite whatever calls must write."""
        ...

    def outputs(self, copy: int) -> list[str]:
        """Files with the bytes of a copy's outputs, as they lie there now."""
        ...


def copies(each: int, sets: int, l2: int, free: int) -> int:
    """How many copies of `each` bytes take turns, at least one for each set of inputs where the `free` bytes of memory allow."""
    each = max(each, 1)
    wanted = max(sets, -(-FOOTPRINT * l2 // each))
    return max(1, min(wanted, MOST_COPIES, int(SHARE_OF_MEMORY * free / each)))


def slopes(timed: Timed, calls: int, rotating: bool, repeats: int) -> dict[str, list[float]]:
    """Seconds a call, `repeats` times: the time of 2 K calls less that of K over K, by both clocks. Which of the two comes first alternates, since the second finds warmer clocks."""
    device, wall = [], []
    for number in range(repeats):
        if number % 2:
            second, first = timed.elapsed(2 * calls, rotating), timed.elapsed(calls, rotating)
        else:
            first, second = timed.elapsed(calls, rotating), timed.elapsed(2 * calls, rotating)
        device.append((second[0] - first[0]) / calls)
        wall.append((second[1] - first[1]) / calls)
    return {"device": device, "wall": wall}


def answer(timed: Timed, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to one request."""
    if "time" in asked:
        return slopes(timed, asked["time"], asked["rotating"], asked["repeats"])
    if "poison" in asked:
        timed.poison()
        return {}
    if "outputs" in asked:
        return {"files": timed.outputs(asked["outputs"])}
    bandwidth: Callable[[], float] | None = getattr(timed, "bandwidth", None)
    if "bandwidth" in asked and bandwidth is not None:
        return {"bytes_per_s": bandwidth()}
    return {"error": f"unknown request {sorted(asked)}"}


def serve(timed: Timed) -> None:
    """Answer requests until there are no more."""
    print(json.dumps(timed.hello), flush=True)
    for line in sys.stdin:
        try:
            said = answer(timed, json.loads(line))
        except (DriverError, RuntimeError, MemoryError, ctypes.ArgumentError) as error:
            said = {"error": " ".join(str(error).split())[:400]}
        print(json.dumps(said), flush=True)
