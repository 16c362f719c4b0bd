"""Blocks in turn, with processes that only pretend."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from truekernel.judge.bench import pairs
from truekernel.judge.bench.comparing import compare
from truekernel.judge.bench.conditions import Conditions


class Pretended:
    """A timer whose calls take a given time."""

    alive = 0

    def __init__(self, seconds: Callable[[], float], log: list[str], name: str) -> None:
        self._seconds, self._log, self._name = seconds, log, name
        Pretended.alive += 1

    def __enter__(self) -> Pretended:
        return self

    def __exit__(self, *_: object) -> None:
        Pretended.alive -= 1

    def ready(self) -> Pretended:
        return self

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self._log.append(f"{self._name}:{next(iter(request))}")
        return {}

    def time(self, calls: int, repeats: int, *, rotating: bool = True) -> tuple[list[float], list[float]]:
        if repeats == pairs.REPEATS:
            self._log.append(self._name)
        each = self._seconds()
        return [each] * repeats, [each] * repeats


class Meter:
    """A GPU that slows down once."""

    def __init__(self, slow: int | None = None) -> None:
        self._slow, self._count = slow, -1

    def read(self) -> Conditions:
        self._count += 1
        return Conditions(sm_clock=900 if self._count == self._slow else 1900)


def _starts(log: list[str], first: float, second: float) -> list[Any]:
    return [lambda: Pretended(lambda: first, log, "A"), lambda: Pretended(lambda: second, log, "B")]


def test_blocks_alternate_and_so_does_who_is_first() -> None:
    log: list[str] = []
    found = pairs.measure(_starts(log, 1e-3, 2e-3), 2, Meter())  # type: ignore[arg-type]
    order = "".join(entry for entry in log if entry in ("A", "B"))
    assert order == "ABBA" * pairs.ROUNDS + "BAAB" * pairs.ROUNDS
    assert found.log_ratios == pytest.approx([math.log(0.5)] * 2)
    assert compare([-value for value in found.log_ratios]).ratio == pytest.approx(2)
    assert Pretended.alive == 0


def test_what_must_be_written_is_poisoned_before_it_is_timed() -> None:
    log: list[str] = []
    pairs.measure(_starts(log, 1e-3, 1e-3), 1, Meter())  # type: ignore[arg-type]
    assert log.index("A:poison") < log.index("A")
    assert log.index("B:poison") < log.index("B")


def test_a_block_under_bad_conditions_is_kept_and_does_not_count() -> None:
    found = pairs.measure(_starts([], 1e-3, 1e-3), 2, Meter(slow=3))  # type: ignore[arg-type]
    assert [bool(block.rejected) for block in found.blocks].count(True) == 1
    assert len(found.blocks) == 2 * 4 * pairs.ROUNDS
    counted = len(found.times(0)) + len(found.times(1))
    assert counted == (len(found.blocks) - 1) * pairs.REPEATS


def test_processes_end_when_a_look_at_the_outputs_fails() -> None:
    def after(pair: int, side: int, timer: Any, calls: int) -> None:
        raise ValueError(f"wrong after {calls} calls")

    with pytest.raises(ValueError, match=f"wrong after {2 * pairs.LEAST_CALLS} calls"):
        pairs.measure(_starts([], 1e-3, 1e-3), 2, Meter(), after=after)  # type: ignore[arg-type]
    assert Pretended.alive == 0


@pytest.mark.parametrize(("seconds", "calls"), [(1e-3, pairs.LEAST_CALLS), (1e-5, 200), (1e-8, pairs.MOST_CALLS)])
def test_a_block_is_long_enough_for_the_clock(seconds: float, calls: int) -> None:
    assert pairs.calls_of(Pretended(lambda: seconds, [], "A")) == calls  # type: ignore[arg-type]
    Pretended.alive = 0
