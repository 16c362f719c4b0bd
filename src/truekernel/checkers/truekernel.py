"""Our checker: about twenty cases over recipes and shapes, poisoned outputs, float64 truth (`bound`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from truekernel.cases import combinations, is_legal, least, make_inputs, parse_recipe, shapes, suite_seed, wide
from truekernel.cases.suite_shapes import SUITE_SHAPES, suite_shapes
from truekernel.checkers.bound import judge_bound, margin_bound
from truekernel.checkers.checker import Judgement
from truekernel.model import Case, Configuration, Execution, Problem
from truekernel.numerics import Tolerance, gathers
from truekernel.numerics.formats import FORMATS

PLAN: tuple[tuple[str, str], ...] = (
    ("normal&parameters", "audit"),
    ("integers", "odd 0"),
    ("special", "odd 1"),
    ("normal*2+100&parameters", "odd 0"),
    ("heavy&parameters", "wide"),
    ("ramp&parameters", "odd 1"),
    ("ramp*-1", "odd 2"),
    ("normal*0.003&parameters", "odd 1"),
    ("signed&parameters", "single 0"),
    ("constant&parameters", "single 1"),
    ("normal&parameters", "least"),
    ("subnormal", "odd 0"),
    ("normal*20", "audit"),
    ("uniform*-1000", "least"),
    ("ramp*1000", "ten"),
    ("ramp*-1000", "ten"),
    ("normal*2&parameters", "tail"),
    ("normal*2&parameters", "long"),
    ("subnormal@0", "odd 0"),
    ("subnormal@1", "odd 0"),
    ("subnormal@2", "odd 0"),
)
"""Recipes and shapes: audit lengths; odd k: all axes odd; single k: the k-th shape with one odd axis, from the end; wide: more rows; least: the shortest rows; and those of `suite_shapes`."""
INSTEAD_OF_RAMPS: dict[str, str] = {"ramp&parameters": "sparse&parameters", "ramp*-1": "uniform*-1"}
"""For problems that sum: the rounding errors of a running sum over smoothly rising values are alike, and would exceed what independent ones may show. Ramps are
for maxima and their places, where a lost element at an end must matter."""


GPU = Configuration("gpu", fill="poison")
ADVERSARIAL = (GPU, Configuration("reverse", fill="poison"), Configuration("warp_greedy", fill="poison"))
"""A barrier that is missing shows where threads run in the opposite order, or where one warp runs ahead as far as it can."""
STALE = Configuration("gpu", fill="stale")
"""Poison may happen to be what a kernel forgets to write: the greatest key of a minimum, say."""
SCHEDULED: tuple[str, ...] = ("normal&parameters", "ramp&parameters", "sparse&parameters")
"""Recipes whose cases run under all of these schedules: one at audit lengths, one at odd ones."""


@dataclass(frozen=True, slots=True)
class Truekernel:
    """Poisons outputs where the published checkers leave what an allocator would, and tries several orders of threads."""

    name: str = "truekernel"
    version: str = "1"
    source_url: str = ""
    tolerances: tuple[Tolerance, ...] = ()
    reseedable: bool = False
    needs_outputs: bool = False
    gated: bool = True

    def configurations(self, case: Case) -> tuple[Configuration, ...]:
        """A GPU's schedule; adversarial ones for a few cases, and stale memory for the first recipe."""
        if case.recipe not in SCHEDULED:
            return (GPU,)
        return (*ADVERSARIAL, STALE) if case.recipe == SCHEDULED[0] else ADVERSARIAL

    def suite(self, problem: Problem) -> list[Case]:
        """The plan's cases that the problem's domains allow: whole numbers for linear problems, special values where they are defined."""
        inputs = make_inputs(problem, Case.of(problem.name, problem.audit_axes(), "normal", 0))
        sums = gathers(lambda: problem.reference(inputs, problem.audit_axes()))
        special = any(spec.domain.nonfinite for spec in problem.inputs)
        floating = sum(spec.dtype in FORMATS for spec in problem.tensors)
        stretched = suite_shapes(problem)
        found = []
        for number, (recipe, shape) in enumerate(PLAN):
            if (recipe == "integers" and not problem.linear) or (recipe == "special" and not special):
                continue
            place = parse_recipe(recipe).place
            if place is not None and (floating < 2 or place >= floating):
                continue
            if recipe.startswith("subnormal") and sums and problem.family == "attention":
                continue  # weights times subnormal values: each term rounds by a whole step unless products are fused
            if shape in SUITE_SHAPES and shape not in stretched:
                continue
            axes = stretched[shape] if shape in SUITE_SHAPES else suite_axes(problem, shape)
            drawn = INSTEAD_OF_RAMPS.get(recipe, recipe) if sums else recipe
            found.append(Case.of(problem.name, axes, drawn, suite_seed(self.name, problem.name, number)))
        return list({(case.axes, case.recipe): case for case in found}.values())

    def judge(self, case: Case, executions: Sequence[Execution]) -> Judgement:
        """See `bound`."""
        return judge_bound(case, executions)

    def margin(self, case: Case, statistics: Mapping[str, float]) -> float:
        """See `bound`."""
        return margin_bound(case, statistics)


def suite_axes(problem: Problem, shape: str) -> dict[str, int]:
    """Lengths of a shape of the plan; the audit lengths where the problem has no such shape."""
    audit = problem.audit_axes()
    kind, _, number = shape.partition(" ")
    if kind == "odd":
        combined = [axes for axes in combinations(problem) if is_legal(problem, axes)]
        return combined[min(int(number), len(combined) - 1)] if combined else audit
    if kind == "single":
        odd = [axes for axes in shapes(problem)[1:] if 0 not in axes.values()]
        single = [axes for axes in odd if sum(axes[name] != audit[name] for name in axes) == 1]
        return single[-1 - int(number) % len(single)] if single else audit
    found = {"wide": wide, "least": least}[kind](problem) if kind != "audit" else audit
    return found if is_legal(problem, found) else audit


CHECKERS = (Truekernel(),)
