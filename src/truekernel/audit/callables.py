"""Checkers of a user's own, callables and commands: they see tensors or source files, and a fault of theirs breaks them, never the audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from truekernel.checkers.checker import ACCEPT, Judgement, judges_outputs
from truekernel.checkers.external_child import safe_text
from truekernel.checkers.external_command import CommandChecker
from truekernel.export import Subject
from truekernel.model import Execution

if TYPE_CHECKING:
    from truekernel.audit.builds import Build
    from truekernel.audit.setup import ProblemSetup


LONGEST_REASON = 1000
"""Characters of a reason that are stored."""


@dataclass(frozen=True, slots=True)
class Opinions:
    """What callables said of one subject, by checker."""

    accepted: tuple[str, ...] = ()
    rejected: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        """As fields of a stored record."""
        return {"accepted_by": self.accepted, "rejected_by": self.rejected, "broken": self.broken}


def ask(setup: ProblemSetup, build: Build | None, subject: Subject | None) -> Opinions:
    """Ask all checkers of the setup that are a user's own about `subject`, executed as `build`; without either, about PyTorch's own eager outputs."""
    accepted: list[str] = []
    rejected: dict[str, str] = {}
    broken: dict[str, str] = {}
    for name, checker in setup.checkers.items():
        if not judges_outputs(checker):
            continue
        if isinstance(checker, CommandChecker) and checker.needs_files:
            if subject is None:
                continue
            host = "nvrtc" if setup.device.name == "cuda" else "cpu"
            said = checker.judge_subject(subject, setup.problem, setup.problem.audit_axes(), host=host)
            _note(name, said, accepted, rejected, broken)
            continue
        requests = setup.suite_requests(name)
        references = [[e.published for e in setup.stage.prepared[case_id].expected] for case_id, _ in requests]
        answers: list[tuple[Execution | None, Any]] = [(None, reference) for reference in references]
        if build is not None:
            one_series = [1] * len(requests)
            answers = list(setup.stage.outputs(build.library, build.variant, build.plans, requests, one_series))
        said = ACCEPT
        # What follows a fault was not executed: the fault itself has decided.
        for reference, (execution, output) in zip(references, answers, strict=False):
            said = checker.opinion(reference, output or (), execution)
            if said.verdict != "accept":
                break
        _note(name, said, accepted, rejected, broken)
    return Opinions(tuple(accepted), rejected, broken)


def _note(name: str, said: Judgement, accepted: list[str], rejected: dict[str, str], broken: dict[str, str]) -> None:
    """Reasons may hold a user's text: what is stored can always be encoded, and a checker that is broken always has one."""
    why = safe_text(said.why, LONGEST_REASON)
    if said.verdict == "accept":
        accepted.append(name)
    elif said.verdict == "reject":
        rejected[name] = why
    else:
        broken[name] = why or "gives no reason"
