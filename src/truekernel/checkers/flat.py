"""Checkers that compare with the published reference within atol = rtol, chosen by the precision of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from truekernel.cases import suite_seed
from truekernel.checkers.checker import ACCEPT, Judgement, fault
from truekernel.model import Case, Configuration, Execution, Problem
from truekernel.numerics import Tolerance, mismatch_name

HALF_PRECISION = 11
"""Bits of the significand at and below which a run counts as half precision (float16 has 11, bfloat16 8)."""
PUBLISHED = (Configuration("gpu", fill="stale"),)
"""Published checkers run on a GPU, and find what an allocator left in elements that a kernel never wrote."""
OFFICIAL_TRIALS = 5


@dataclass(frozen=True, slots=True)
class FlatChecker:
    """`single`: atol and rtol for float32 (and integer) outputs, `half` for float16 and bfloat16. `recipes`: of its cases, at audit lengths;
    `seeds`: which suite's seeds they use (checkers that share seeds and recipes share executions)."""

    name: str
    version: str
    source_url: str
    single: float
    half: float
    recipes: tuple[str, ...]
    seeds: str
    reseedable: bool = True
    needs_outputs: bool = False
    gated: bool = False

    @property
    def tolerances(self) -> tuple[Tolerance, ...]:
        """Pairs that must be in the statistics."""
        return tuple(dict.fromkeys(((self.single, self.single), (self.half, self.half))))

    def configurations(self, case: Case) -> tuple[Configuration, ...]:  # noqa: ARG002
        """As on a GPU, with what an allocator left."""
        return PUBLISHED

    def suite(self, problem: Problem) -> list[Case]:
        """One case for each recipe, at the problem's audit lengths."""
        return [
            Case.of(problem.name, problem.audit_axes(), recipe, suite_seed(self.seeds, problem.name, number))
            for number, recipe in enumerate(self.recipes)
        ]

    def judge(self, case: Case, executions: Sequence[Execution]) -> Judgement:  # noqa: ARG002
        """Accept when torch.allclose(reference, output, atol, rtol) does."""
        found = fault(executions)
        if found is not None:
            return found
        for execution in executions:
            statistics = execution.statistics
            tolerance = self.tolerance(statistics)
            refused = statistics[mismatch_name(tolerance, tolerance)]
            if refused > 0:
                share = f"{refused:.0f} of {statistics['elements']:.0f} elements"
                return Judgement("reject", f"{share} differ by more than atol = rtol = {tolerance:g}")
        return ACCEPT

    def tolerance(self, statistics: Mapping[str, float]) -> float:
        """atol = rtol at the precision of the run."""
        return self.half if 0 < statistics["precision"] <= HALF_PRECISION else self.single

    def margin(self, case: Case, statistics: Mapping[str, float]) -> float:  # noqa: ARG002
        """The flat tolerance that the output would need, over the one that it gets (up to roundings at the boundary)."""
        return statistics["flat"] / self.tolerance(statistics)
