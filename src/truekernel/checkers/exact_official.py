"""Ours, for comparison: the official inputs with our strict tolerance, so that the two halves of a checker's gain can be told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from truekernel.cases import suite_seed
from truekernel.checkers.bound import judge_bound, margin_bound
from truekernel.checkers.checker import Judgement
from truekernel.checkers.flat import OFFICIAL_TRIALS, PUBLISHED
from truekernel.checkers.kernelbench import SEEDS
from truekernel.model import Case, Configuration, Execution, Problem
from truekernel.numerics import Tolerance


@dataclass(frozen=True, slots=True)
class ExactOfficial:
    """KernelBench's cases and executions, judged by `bound`."""

    name: str = "exact-official"
    version: str = "1"
    source_url: str = ""
    tolerances: tuple[Tolerance, ...] = ()
    reseedable: bool = True
    needs_outputs: bool = False
    gated: bool = False

    def configurations(self, case: Case) -> tuple[Configuration, ...]:  # noqa: ARG002
        """As on a GPU, with what an allocator left."""
        return PUBLISHED

    def suite(self, problem: Problem) -> list[Case]:
        """KernelBench's five cases."""
        return [
            Case.of(problem.name, problem.audit_axes(), "official", suite_seed(SEEDS, problem.name, number))
            for number in range(OFFICIAL_TRIALS)
        ]

    def judge(self, case: Case, executions: Sequence[Execution]) -> Judgement:
        """See `bound`."""
        return judge_bound(case, executions)

    def margin(self, case: Case, statistics: Mapping[str, float]) -> float:
        """See `bound`."""
        return margin_bound(case, statistics)


CHECKERS = (ExactOfficial(),)
