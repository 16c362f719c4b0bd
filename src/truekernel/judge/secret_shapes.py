"""Lengths that nobody can know before a check: those of the suite are public, and a candidate may be right on them alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from truekernel.cases.shapes import is_legal, largest, step_of
from truekernel.model import Axes, Problem

WITHIN, BEYOND = 2, 1
"""So many shapes between the shortest and the longest lengths that a problem names, and so many in which one axis is longer than all of these."""
LONGER = 2
"""At most so many times: programs may have limits. The same for tensors and operations against those at audit lengths, since each shape takes its time."""
_ATTEMPTS = 60


def secret_shapes(problem: Problem, secret: str, known: Sequence[Axes]) -> list[dict[str, int]]:
    """Shapes that follow from a secret; none of `known`. Fewer, or none, where a problem's axes may hardly vary."""
    numbers = _numbers(secret)
    seen = [dict(axes) for axes in known]
    found: list[dict[str, int]] = []
    for beyond in (False,) * WITHIN + (True,) * BEYOND:
        for _ in range(_ATTEMPTS):
            axes = _shape(problem, numbers, beyond=beyond)
            if axes not in (*seen, *found) and is_legal(problem, axes) and _is_affordable(problem, axes):
                found.append(axes)
                break
    return found


def _shape(problem: Problem, numbers: Iterator[int], *, beyond: bool) -> dict[str, int]:
    axes = problem.audit_axes()
    free = [name for name in axes if step_of(problem.axes[name])]
    long = free[next(numbers) % len(free)] if free and beyond else None
    for name in free:
        axis, step = problem.axes[name], step_of(problem.axes[name])
        named = [length // step for length in (axis.audit, *axis.odd) if length > 0]
        low, high = (max(named) + 1, LONGER * max(named)) if name == long else (min(named), max(named))
        axes[name] = step * (low + next(numbers) % (high - low + 1))
    return axes


def _is_affordable(problem: Problem, axes: Axes) -> bool:
    audit = problem.audit_axes()
    return largest(problem, axes) <= LONGER * largest(problem, audit) and problem.flops(axes) <= LONGER * problem.flops(
        audit
    )


def _numbers(secret: str) -> Iterator[int]:
    count = 0
    while True:
        yield int.from_bytes(hashlib.sha256(f"{secret}/lengths/{count}".encode()).digest()[:8], "little")
        count += 1
