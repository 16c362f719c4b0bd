"""Shapes of suites beyond the audit and odd lengths of an axis; no witness uses any of their lengths."""

from __future__ import annotations

from truekernel.cases.shapes import is_legal, step_of
from truekernel.cases.stretched import Reach, stretched
from truekernel.model import AxisSpec, Problem

SUITE_SHAPES: tuple[str, ...] = ("ten", "tail", "long")
REACH = Reach(block=290, elements=60_000, looping=60_000, tiles=2100, operations=4e5)
SHORT = 9


def suite_shapes(problem: Problem) -> dict[str, dict[str, int]]:
    """Those that are legal, by name: "ten": rows of ten; "tail": one more than a multiple of 128 (or 16) on reduction and feature axes, so that the last tile holds one element;
    "long" as in `stretched`. All else is the least odd length above 1."""
    few = {name: _few(axis) for name, axis in problem.axes.items()}
    found = {
        "ten": {
            name: max(10 * step_of(axis), few[name]) if _inner(axis) else few[name]
            for name, axis in problem.axes.items()
        },
        "tail": {name: max(_tail(axis), few[name]) for name, axis in problem.axes.items()},
    }
    found |= stretched(problem, few, REACH, lambda _, wanted: wanted)
    return {shape: found[shape] for shape in SUITE_SHAPES if shape in found and is_legal(problem, found[shape])}


def _inner(axis: AxisSpec) -> bool:
    return step_of(axis) > 0 and axis.kind in ("reduction", "feature")


def _few(axis: AxisSpec) -> int:
    """The least odd length above 1 where that is short, else five: suites use neither elsewhere with all axes short."""
    step = step_of(axis)
    if not step:
        return axis.audit
    least = min((length for length in axis.odd if length > 1), default=2 * step)
    return least if least <= SHORT * step else 5 * step


def _tail(axis: AxisSpec) -> int:
    if not _inner(axis):
        return _few(axis)
    step = step_of(axis)
    return 128 * step + step if axis.audit >= 128 * step else 16 * step + step
