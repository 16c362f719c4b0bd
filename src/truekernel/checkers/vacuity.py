"""Which trivial outputs a checker accepts: at the suite's own sizes, and at official sizes from references and tolerances alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from truekernel.cases import make_inputs
from truekernel.checkers.checker import Checker, judges_outputs
from truekernel.model import Axes, Case, Execution, Outcome, Problem
from truekernel.model.lengths import lengths
from truekernel.numerics import Expected, expect, independent_axes, official_slice, statistics, trivial_outputs

WANTED_ELEMENTS = 1 << 18
"""Independent axes are cut until all tensors together have at most so many elements..."""
WANTED_FLOPS = 1e8
"""... and the reference at most so many operations."""
OFFICIAL_RUNS = 4
"""Perturbed runs behind the error scale there: enough to tell a trivial output from a right one."""
MOST = 20.0
"""Official sizes that cost more than this many times the wanted numbers, after axes were cut, are not evaluated."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A trivial output that a checker accepts on all cases. `margin`: largest share of the allowed error that it uses, below 1."""

    trivial: str
    margin: float


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case with its tensors."""

    case: Case
    inputs: Mapping[str, torch.Tensor]
    expected: Sequence[Expected]


def passing_trivials(checker: Checker, cases: Sequence[Prepared]) -> list[Passed]:
    """The trivial outputs that a checker accepts on every one of its cases, in the order of `TRIVIAL`.

    "other case" is the reference of the case before (of the last one for the first), where the shapes agree. A checker that judges tensors is asked by its
    `opinion`; its margin is unknown (NaN). Without cases with elements nothing passes.
    """
    margins: dict[str, list[float]] = {}
    refused: set[str] = set()
    for number, prepared in enumerate(cases):
        before = cases[number - 1].expected if len(cases) > 1 else None
        outputs = trivial_outputs(prepared.expected, prepared.inputs, before)
        if outputs:
            refused |= {name for name in margins if name not in outputs and name != "other case"}
        for name, output in outputs.items():
            if name in refused:
                continue
            margin = _margin_if_accepted(checker, prepared, output)
            if margin is None:
                refused.add(name)
            else:
                margins.setdefault(name, []).append(margin)
    return [Passed(name, max(found)) for name, found in margins.items() if name not in refused]


def _margin_if_accepted(checker: Checker, prepared: Prepared, outputs: list[torch.Tensor]) -> float | None:
    if judges_outputs(checker):
        published = [want.published for want in prepared.expected]
        return math.nan if checker.opinion(published, outputs, None).verdict == "accept" else None
    # A trivial kernel does write its output: whatever the buffers were filled with is gone.
    found = statistics(outputs, prepared.expected, "stale", checker.tolerances)
    executions = [Execution(prepared.case.id, c, Outcome("ok"), found) for c in checker.configurations(prepared.case)]
    if checker.judge(prepared.case, executions).verdict != "accept":
        return None
    return checker.margin(prepared.case, found)


def official_cases(problem: Problem, suite: Sequence[Case]) -> tuple[list[Prepared], str]:
    """The audit-length cases of a suite at official lengths, and a note: how axes were cut, or (with no cases) why there are none.

    Axes along which outputs are independent (tested at audit lengths, see `independent_axes`) are cut, which changes no value: what is evaluated is a slice of
    the official case. A suite that varies shapes keeps only its cases at audit lengths; at most two cases are evaluated.
    """
    audit = problem.audit_axes()
    wanted = [case for case in suite if case.lengths == audit][:2]
    if not wanted:
        return [], "the suite has no case at the problem's own lengths"
    independent = independent_axes(problem, make_inputs(problem, wanted[0]), audit)
    axes = official_slice(problem, independent, lambda found: cost(problem, found), 1.0)
    if cost(problem, axes) > MOST:
        return (
            [],
            f"too large even as a slice: {elements(problem, axes):.2g} elements, {problem.flops(axes):.2g} operations",
        )
    prepared = []
    for case in wanted:
        scaled = Case.of(problem.name, axes, case.recipe, case.seed)
        inputs = make_inputs(problem, scaled)
        prepared.append(Prepared(scaled, inputs, expect(problem, inputs, axes, runs=OFFICIAL_RUNS)))
    official = problem.official_axes()
    cut = [f"{name} {axes[name]} of {official[name]}" for name in axes if axes[name] != official[name]]
    return prepared, f"slice: {', '.join(cut)}" if cut else "whole"


def elements(problem: Problem, axes: Axes) -> float:
    """Elements of all inputs, parameters and outputs."""
    shapes = [*(spec.shape for spec in problem.tensors), *(spec.shape for spec in problem.outputs)]
    return float(sum(math.prod(lengths(shape, axes)) for shape in shapes))


def cost(problem: Problem, axes: Axes) -> float:
    """Cost of evaluating a case, in units of what is wanted at most."""
    return max(elements(problem, axes) / WANTED_ELEMENTS, problem.flops(axes) / WANTED_FLOPS)
