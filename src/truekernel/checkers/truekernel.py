"""Our checker: about ten cases over recipes and shapes, poisoned outputs, float64 truth (`bound`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from truekernel.cases import combinations, is_legal, make_inputs, shapes, suite_seed
from truekernel.checkers.bound import judge_bound, margin_bound
from truekernel.checkers.checker import Judgement
from truekernel.model import Case, Configuration, Execution, Problem
from truekernel.numerics import Tolerance, gathers

if TYPE_CHECKING:
    import torch

PLAN: tuple[tuple[str, str], ...] = (
    ("normal&parameters", "audit"),
    ("integers", "odd 0"),
    ("special", "odd 1"),
    ("normal*2+100&parameters", "odd 0"),
    ("heavy&parameters", "audit"),
    ("ramp&parameters", "odd 1"),
    ("ramp*-1", "odd 2"),
    ("normal*0.003&parameters", "odd 1"),
    ("constant&parameters", "odd 2"),
    ("signed&parameters", "single 0"),
    ("normal&parameters", "single 1"),
    ("normal*20", "audit"),
)
"""Recipes and shapes: audit lengths; odd k: all axes odd; single k: the k-th shape with one odd axis, from the end."""
INSTEAD_OF_RAMPS: dict[str, str] = {"ramp&parameters": "sparse&parameters", "ramp*-1": "uniform*-1"}
"""For problems that sum: the rounding errors of a running sum over smoothly rising values are alike, and would exceed what independent ones may show. Ramps are
for maxima and their places, where a lost element at an end must matter."""


@dataclass(frozen=True, slots=True)
class Truekernel:
    """Runs under a GPU's schedule like the published checkers, with poison where they leave what an allocator would."""

    name: str = "truekernel"
    version: str = "1"
    source_url: str = ""
    configurations: tuple[Configuration, ...] = (Configuration("gpu", fill="poison"),)
    tolerances: tuple[Tolerance, ...] = ()
    reseedable: bool = False
    needs_outputs: bool = False

    def suite(self, problem: Problem) -> list[Case]:
        """The plan's cases that the problem's domains allow: whole numbers for linear problems, special values where they are defined."""
        inputs = make_inputs(problem, Case.of(problem.name, problem.audit_axes(), "normal", 0))
        sums = gathers(lambda: problem.reference(inputs, problem.audit_axes()))
        special = any(spec.domain.nonfinite for spec in problem.inputs)
        found = []
        for number, (recipe, shape) in enumerate(PLAN):
            if (recipe == "integers" and not problem.linear) or (recipe == "special" and not special):
                continue
            axes = suite_axes(problem, shape)
            drawn = INSTEAD_OF_RAMPS.get(recipe, recipe) if sums else recipe
            found.append(Case.of(problem.name, axes, drawn, suite_seed(self.name, problem.name, number)))
        return list({(case.axes, case.recipe): case for case in found}.values())

    def judge(self, case: Case, executions: Sequence[Execution]) -> Judgement:
        """See `bound`."""
        return judge_bound(case, executions)

    def margin(self, case: Case, statistics: Mapping[str, float]) -> float:
        """See `bound`."""
        return margin_bound(case, statistics)

    def opinion(
        self, reference: Sequence[torch.Tensor], candidate: Sequence[torch.Tensor], execution: Execution | None
    ) -> Judgement:
        """Not asked: it judges statistics."""
        raise NotImplementedError(f"{self.name} judges statistics")


def suite_axes(problem: Problem, shape: str) -> dict[str, int]:
    """Lengths of a shape of the plan; the audit lengths where the problem has no such shape."""
    audit = problem.audit_axes()
    kind, _, number = shape.partition(" ")
    if kind == "odd":
        found = [axes for axes in combinations(problem) if is_legal(problem, axes)]
        return found[min(int(number), len(found) - 1)] if found else audit
    if kind == "single":
        single = [axes for axes in shapes(problem)[1:] if sum(axes[name] != audit[name] for name in axes) == 1]
        return single[-1 - int(number) % len(single)] if single else audit
    return audit


CHECKERS = (Truekernel(),)
