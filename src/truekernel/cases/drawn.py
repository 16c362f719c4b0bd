"""Shapes drawn at random: what is wrong only where two axes have an unusual relation, which no list of shapes thinks of.

A search on a hundred and forty such shapes proved one in twelve mutants wrong that survived all others; most of these fell to several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from truekernel.cases.philox import words
from truekernel.cases.shapes import is_legal, step_of
from truekernel.model import Problem
from truekernel.model.lengths import lengths

ELEMENTS = 6_000
"""Of the largest tensor."""
OPERATIONS = 2e5
_ATTEMPTS = 400
_FEW = tuple(range(1, 10))
_SMALL = tuple(range(1, 21))
_NEAR = tuple(sorted({n + d for n in (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512) for d in (-1, 0, 1, 4)}))
_STYLES = ("small", "mixed", "mixed", "one")
"""All axes up to 20; any of both kinds; one near a multiple of 8, all others below ten."""


def drawn(problem: Problem, seed: int, count: int, length: Callable[[str, int], int]) -> list[dict[str, int]]:
    """Up to `count` different shapes. `length`: what an axis really gets, by its name and the drawn length."""
    free = [name for name in problem.axes if step_of(problem.axes[name])]
    found: list[dict[str, int]] = []
    numbers = _numbers(seed)
    for _ in range(_ATTEMPTS if free else 0):
        style, chosen = _STYLES[next(numbers) % len(_STYLES)], free[next(numbers) % len(free)]
        axes = problem.audit_axes()
        for name in free:
            near = next(numbers) % 2 if style == "mixed" else style == "one" and name == chosen
            pool = _NEAR if near else _FEW if style == "one" else _SMALL
            wanted = [n * step_of(problem.axes[name]) for n in pool]
            legal = [n for n in wanted if n <= _most(problem, name)] or wanted[:1]
            axes[name] = length(name, legal[next(numbers) % len(legal)])
        if axes not in found and is_legal(problem, axes) and _is_small(problem, axes):
            found.append(axes)
            if len(found) == count:
                break
    return found


def _most(problem: Problem, name: str) -> int:
    """A program may have limits: no axis gets much longer than the problem's own lengths, but for batches."""
    axis = problem.axes[name]
    return _NEAR[-1] * step_of(axis) if axis.kind == "batch" else 2 * max(axis.audit, *axis.odd)


def _is_small(problem: Problem, axes: dict[str, int]) -> bool:
    shapes = [*(spec.shape for spec in problem.tensors), *(spec.shape for spec in problem.outputs)]
    return max(math.prod(lengths(shape, axes)) for shape in shapes) <= ELEMENTS and problem.flops(axes) <= OPERATIONS


def _numbers(seed: int) -> Iterator[int]:
    yield from map(int, words(seed, "shapes", _ATTEMPTS * 64))
