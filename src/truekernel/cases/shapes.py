"""Shapes worth a case."""

from __future__ import annotations

import math

from truekernel.errors import BadInputError
from truekernel.model import Axes, AxisSpec, Problem
from truekernel.model.lengths import lengths

COMBINATIONS = 3
MOST_ELEMENTS = 1 << 30
"""Of one tensor: 4 GB of float32."""


def shapes(problem: Problem) -> list[dict[str, int]]:
    """Axis lengths worth a case: the audit lengths first, then every odd length of one axis at a time, then a few combinations in which all axes
    are odd. Without repetition; shapes that no tensor can have are left out. A length of 0 only where the axis lists it."""
    audit = problem.audit_axes()
    found = [audit]
    for name, axis in problem.axes.items():
        found += [{**audit, name: length} for length in axis.odd]
    found += combinations(problem)
    return [axes for k, axes in enumerate(found) if axes not in found[:k] and is_legal(problem, axes)]


def combinations(problem: Problem) -> list[dict[str, int]]:
    """Up to COMBINATIONS shapes in which every axis takes one of its odd lengths above 1, if it has any: the k-th shape starts k lengths later, and neighbouring
    axes are shifted against each other. (Axes of 0 and 1 elements hide faults of the others: they come one at a time.)"""
    result: list[dict[str, int]] = []
    for k in range(COMBINATIONS):
        axes = problem.audit_axes()
        for number, (name, axis) in enumerate(problem.axes.items()):
            odd = sorted((length for length in axis.odd if length > 1), reverse=True)
            if odd:
                axes[name] = odd[(k + number) % len(odd)]
        if axes not in result:
            result.append(axes)
    return result


def wide(problem: Problem) -> dict[str, int]:
    """The audit lengths with longer batch axes: what is wrong only beyond the first few rows shows here."""
    return {name: wide_length(axis) for name, axis in problem.axes.items()}


def wide_length(axis: AxisSpec) -> int:
    """Length of an axis in `wide`: more than twice the audit length where it is a batch axis that may vary."""
    return 2 * axis.audit + 1 if axis.kind == "batch" and axis.odd and axis.audit < 64 else axis.audit


def least(problem: Problem) -> dict[str, int]:
    """The audit lengths with every other axis than a batch axis at its smallest odd length above 0."""
    axes = problem.audit_axes()
    for name, axis in problem.axes.items():
        positive = [length for length in axis.odd if length > 0]
        if positive and axis.kind != "batch":
            axes[name] = min(positive)
    return axes


def step_of(axis: AxisSpec) -> int:
    """What all lengths of an axis are multiples of; 0 for one that may not vary."""
    positive = [length for length in axis.odd if length > 0]
    return math.gcd(axis.audit, *positive) if positive else 0


def is_legal(problem: Problem, axes: Axes) -> bool:
    """Whether all tensors and outputs have a shape at these lengths, none of more than `most_elements`; an empty one only where an axis of length 0 makes it so."""
    specs = [*(spec.shape for spec in problem.tensors), *(spec.shape for spec in problem.outputs)]
    try:
        found = [length for shape in specs for length in lengths(shape, axes)]
    except BadInputError:
        return False
    return (0 in axes.values() or 0 not in found) and largest(problem, axes) <= most_elements(problem)


def most_elements(problem: Problem) -> int:
    """Elements of the largest legal tensor: `MOST_ELEMENTS`, or those of the largest at the official lengths. Programs count elements in 32 bits, and what only happens near 2^31 of them says nothing
    about the sizes that a problem is posed for."""
    return max(MOST_ELEMENTS, largest(problem, problem.official_axes()))


def largest(problem: Problem, axes: Axes) -> int:
    """Elements of the largest tensor."""
    shapes = [*(spec.shape for spec in problem.tensors), *(spec.shape for spec in problem.outputs)]
    return max(math.prod(lengths(shape, axes)) for shape in shapes)
