"""A user's own callable as checker: `package.module:function(reference, candidate) -> bool`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truekernel.cases import suite_seed
from truekernel.checkers.checker import ACCEPT, Judgement, fault
from truekernel.checkers.external_child import one_or_all, said
from truekernel.checkers.external_process import CallableProcess, ChildBrokenError
from truekernel.checkers.flat import OFFICIAL_TRIALS, PUBLISHED
from truekernel.checkers.kernelbench import SEEDS
from truekernel.errors import BadInputError
from truekernel.model import Case, Configuration, Execution, Problem
from truekernel.numerics import Tolerance

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class ExternalChecker:
    """Judges tensors. `function` gets the reference's and the candidate's output (a tensor, or a tuple of them where a problem has several) on the five official
    cases and says whether it accepts: True, False or a `Judgement`. One that raises or returns anything else is broken: undetermined, with the reason.

    Where it is a `CallableProcess` (as `load_external` makes it) it is called there, and one that ends, hangs or breaks that process is broken too; a plain function is called here.
    """

    name: str
    function: CallableProcess | Callable[[Any, Any], Any]
    version: str = ""
    source_url: str = ""
    tolerances: tuple[Tolerance, ...] = ()
    reseedable: bool = False
    needs_outputs: bool = True
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

    def judge(self, case: Case, executions: Sequence[Execution]) -> Judgement:  # noqa: ARG002
        """Faults as for every checker; the rest needs outputs."""
        return fault(executions) or Judgement("undetermined", f"{self.name} judges tensors, not statistics")

    def margin(self, case: Case, statistics: Mapping[str, float]) -> float:  # noqa: ARG002
        """Unknown: it judges tensors."""
        return math.nan

    def opinion(
        self, reference: Sequence[torch.Tensor], candidate: Sequence[torch.Tensor], execution: Execution | None
    ) -> Judgement:
        """What the callable says of one execution's outputs. It gets copies, so that nothing that it writes is seen by others."""
        found = fault([execution]) if execution is not None else None
        if found is not None:
            return found
        if isinstance(self.function, CallableProcess):
            verdict, why = self.function.ask(reference, candidate)
        else:
            copies = [[tensor.clone() for tensor in side] for side in (reference, candidate)]
            verdict, why = said(self.function, *(one_or_all(side) for side in copies))
        if verdict == "accept":
            return ACCEPT
        if verdict == "reject":
            return Judgement("reject", why or f"{self.name} says no")
        return Judgement("undetermined", f"{self.name} {why}")


def load_external(name: str) -> ExternalChecker:
    """The checker named "package.module:function" (the current directory is searched too), in a process that is kept for all its calls.

    The same name gives the same checker as long as the current directory stays: a process that broke is not started again. Raises BadInputError when it can't be imported.
    """
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise BadInputError(f"checker '{name}' is not of the form package.module:function")
    return _loaded(name, module, attribute, Path.cwd())


@cache
def _loaded(name: str, module: str, attribute: str, directory: Path) -> ExternalChecker:  # noqa: ARG001
    try:
        return ExternalChecker(name, CallableProcess(module, attribute))
    except ChildBrokenError as error:
        why = str(error)
    raise BadInputError(
        f"checker '{name}' {why}" if why.startswith("is a ") else f"checker '{name}' can't be imported: {why}"
    )
