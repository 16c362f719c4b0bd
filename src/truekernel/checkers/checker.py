"""What a checker is: a suite of cases and a judge, kept apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeGuard

from truekernel.model import SCHEDULES, Case, Configuration, Execution, Problem, Schedule, Status
from truekernel.numerics import Tolerance

if TYPE_CHECKING:
    import torch

Verdict = Literal["accept", "reject", "undetermined"]
REPORTED: tuple[Status, ...] = (
    "compile_error",
    "out_of_bounds",
    "misaligned",
    "trap",
    "timeout",
    "crash",
    "deadlock",
    "barrier_divergence",
)
"""Ends that any checker sees: errors that a GPU reports, and hangs (a plain run names a barrier's divergence only when its block can't go on)."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge says. `why`: one line for people, empty on acceptance."""

    verdict: Verdict
    why: str = ""


ACCEPT = Judgement("accept")


class Checker(Protocol):
    """A suite and a judge, with settings of its authors.

    `configurations(case)`: how a case is executed; `judge` gets one execution for each, in order. `tolerances`: (atol, rtol) pairs whose
    mismatches must be among the statistics. `reseedable`: all cases draw from random recipes, so that the same suite on other seeds is the
    same checker. `needs_outputs`: it judges tensors instead of statistics, as an `OutputChecker`; `judge` then leaves everything open.
    `gated`: it judges its cases first, and drops those on which honest programs do not pass with a margin.
    """

    @property
    def name(self) -> str:
        """Name on the command line."""
        ...

    @property
    def version(self) -> str:
        """Version of the settings."""
        ...

    @property
    def source_url(self) -> str:
        """Where the settings come from; empty for ours."""
        ...

    def configurations(self, case: Case) -> tuple[Configuration, ...]:
        """How a case of the suite is executed, once or several times."""
        ...

    @property
    def tolerances(self) -> tuple[Tolerance, ...]:
        """(atol, rtol) pairs that must be in the statistics."""
        ...

    @property
    def reseedable(self) -> bool:
        """Whether other seeds make the same checker."""
        ...

    @property
    def needs_outputs(self) -> bool:
        """Whether it judges tensors."""
        ...

    @property
    def gated(self) -> bool:
        """Whether it drops cases that fail the gate of validity."""
        ...

    def suite(self, problem: Problem) -> list[Case]:
        """The cases on which candidates for a problem are judged, in order."""
        ...

    def judge(self, case: Case, executions: Sequence[Execution]) -> Judgement:
        """What the executions of one case say."""
        ...

    def margin(self, case: Case, statistics: Mapping[str, float]) -> float:
        """Share of what is allowed that an execution's statistics use: `judge` accepts up to 1. NaN where it judges tensors."""
        ...


class OutputChecker(Checker, Protocol):
    """A checker that judges tensors."""

    def opinion(
        self, reference: Sequence[torch.Tensor], candidate: Sequence[torch.Tensor], execution: Execution | None
    ) -> Judgement:
        """What the outputs of one execution say (None: the candidate is PyTorch itself)."""
        ...


def judges_outputs(checker: Checker) -> TypeGuard[OutputChecker]:
    """Whether a checker judges tensors instead of statistics."""
    return checker.needs_outputs


def fault(executions: Sequence[Execution]) -> Judgement | None:
    """The judgement on executions that did not end ok, the same for all checkers; None when all did.

    Faults that a GPU reports reject; what says nothing about the kernel (infrastructure, host arithmetic that differs from CUDA's) and faults
    that only a sanitiser sees leave it undetermined. An execution without statistics returned outputs of other shapes or dtypes.
    """
    opened = None
    for execution in executions:
        status = execution.outcome.status
        if status in REPORTED:
            return Judgement("reject", f"{status.replace('_', ' ')} {execution.outcome.message}".strip())
        if status != "ok":
            opened = opened or Judgement(
                "undetermined", f"{status.replace('_', ' ')} {execution.outcome.message}".strip()
            )
        elif not execution.statistics:
            return Judgement("reject", "an output has another shape or dtype")
    return opened


def accepts(
    checker: Checker,
    suite: Sequence[Case],
    executions: Mapping[tuple[str, Configuration], Execution],
    schedules: Sequence[Schedule] = SCHEDULES,
) -> Judgement:
    """A checker's verdict over its whole suite: the first case that rejects rejects, else anything left open leaves it open.

    `executions`: by (case id, configuration); what follows a fault may be missing. `schedules`: those that the device has; a suite asks for no others
    there. A suite of no cases decides nothing.
    """
    opened = None if suite else Judgement("undetermined", "the suite has no cases")
    for case in suite:
        wanted = [executions.get((case.id, c)) for c in checker.configurations(case) if c.schedule in schedules]
        found = [execution for execution in wanted if execution is not None]
        if len(found) == len(wanted):
            judgement = checker.judge(case, found)
        else:
            judgement = fault(found) or Judgement("undetermined", f"case {case.id} was not executed")
        if judgement.verdict == "reject":
            return judgement
        if judgement.verdict == "undetermined":
            opened = opened or judgement
    return opened or ACCEPT
