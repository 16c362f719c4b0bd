"""A user's own callable as checker: `package.module:function(reference, candidate) -> bool`."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from truekernel.cases import suite_seed
from truekernel.checkers.checker import ACCEPT, Judgement, fault
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
    cases and says whether it accepts: True, False or a `Judgement`. One that raises or returns anything else is broken: undetermined, with the reason."""

    name: str
    function: Callable[[Any, Any], Any]
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
        try:
            answer = self.function(_copied(reference), _copied(candidate))
        except Exception as error:
            return Judgement("undetermined", f"{self.name} raised {type(error).__name__}: {error}".splitlines()[0])
        if isinstance(answer, Judgement):
            return answer
        if isinstance(answer, bool) or type(answer).__name__ in ("bool_", "bool"):
            return ACCEPT if answer else Judgement("reject", f"{self.name} says no")
        return Judgement("undetermined", f"{self.name} returned {type(answer).__name__}, not True or False")


def _copied(tensors: Sequence[torch.Tensor]) -> torch.Tensor | tuple[torch.Tensor, ...]:
    copies = tuple(tensor.clone() for tensor in tensors)
    return copies[0] if len(copies) == 1 else copies


def load_external(name: str) -> ExternalChecker:
    """The checker named "package.module:function" (the current directory is searched too). Raises BadInputError when it can't be imported."""
    import os
    import sys

    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise BadInputError(f"checker '{name}' is not of the form package.module:function")
    if os.getcwd() not in sys.path:  # noqa: PTH109
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise BadInputError(f"checker '{name}' can't be imported: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise BadInputError(f"checker '{name}' is a {type(found).__name__}, not a function of (reference, candidate)")
    return ExternalChecker(name, found)
