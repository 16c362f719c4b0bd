"""What each checker says of a stored mutant or honest variant: decided from statistics alone, without executing anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from truekernel.audit.records import HonestRecord, MutantRecord, ProblemRecord
from truekernel.checkers import Checker
from truekernel.checkers.checker import Judgement, fault
from truekernel.model import Case, Configuration, Execution

State = Literal["accept", "reject", "undetermined"]
Subject = MutantRecord | HonestRecord


@dataclass(frozen=True, slots=True)
class Verdict:
    """A checker's verdict on a subject. `cases`: its judgement case by case, in the order of its suite; empty for a checker that is a callable."""

    state: State
    why: str = ""
    cases: tuple[State, ...] = ()


@dataclass(frozen=True, slots=True)
class SuiteCase:
    """A case of a suite, with the executions that it asks for."""

    case: Case
    case_id: str
    configurations: tuple[Configuration, ...]


class Bench:
    """The checkers of a run, with the problems' suites as they were recorded."""

    def __init__(self, checkers: Mapping[str, Checker], problems: Mapping[str, ProblemRecord]) -> None:
        self.checkers = checkers
        self.problems = problems
        self._cases = {
            name: {c.id: Case.of(name, c.axes, c.recipe, c.seed) for c in problem.cases}
            for name, problem in problems.items()
        }
        self._last: tuple[Subject | None, dict[tuple[str, Configuration], Execution]] = (None, {})
        self._suites = {
            (problem, checker): self._suite(problem, checker) for problem in problems for checker in checkers
        }

    def case(self, problem: str, case_id: str) -> Case:
        """A case of a problem by its id."""
        return self._cases[problem][case_id]

    def suite(self, problem: str, checker: str) -> Sequence[SuiteCase]:
        """A checker's cases on a problem, in order."""
        return self._suites[problem, checker]

    def _suite(self, problem: str, checker: str) -> list[SuiteCase]:
        grouped: dict[str, list[Configuration]] = {}
        for entry in self.problems[problem].suites.get(checker, ()):
            grouped.setdefault(entry.case_id, []).append(Configuration(entry.schedule, entry.schedule_seed, entry.fill))
        return [SuiteCase(self.case(problem, case_id), case_id, tuple(c)) for case_id, c in grouped.items()]

    def verdict(self, subject: Subject, checker: str, *, judged_by: str | None = None) -> Verdict:
        """A checker's verdict; with `judged_by`, what that checker's judge says of this checker's inputs."""
        if checker in subject.broken:
            return Verdict("undetermined", subject.broken[checker])
        if checker in subject.rejected_by:
            return Verdict("reject", subject.rejected_by[checker])
        if checker in subject.accepted_by:
            return Verdict("accept")
        judge = self.checkers[judged_by or checker]
        seen = self._seen(subject)
        states: list[State] = []
        why: dict[State, str] = {}
        for entry in self.suite(subject.problem, checker):
            executions = [e for c in entry.configurations if (e := seen.get((entry.case_id, c))) is not None]
            if len(executions) == len(entry.configurations):
                judgement = judge.judge(entry.case, executions)
            else:  # left out after a fault, which has decided
                judgement = fault(executions) or Judgement("undetermined", "not executed")
            states.append(judgement.verdict)
            why.setdefault(judgement.verdict, judgement.why)
        return Verdict(overall(states), why.get(overall(states), ""), tuple(states))

    def ends(self, subject: Subject, checker: str) -> set[str]:
        """How the executions of a checker's suite ended."""
        seen = self._seen(subject)
        suite = self.suite(subject.problem, checker)
        wanted = [(entry.case_id, c) for entry in suite for c in entry.configurations]
        return {seen[request].outcome.status for request in wanted if request in seen}

    def _seen(self, subject: Subject) -> dict[tuple[str, Configuration], Execution]:
        """A subject's executions by request. The last one's are kept: checkers ask one after the other."""
        if self._last[0] is not subject:
            self._last = subject, {(e.case_id, e.configuration): e for e in subject.executions}
        return self._last[1]


def overall(states: Sequence[State]) -> State:
    """One rejected case rejects; what is left open elsewhere then no longer matters. A suite of no cases decides nothing."""
    if "reject" in states:
        return "reject"
    return "undetermined" if "undetermined" in states or not states else "accept"


def failed(execution: Execution) -> bool:
    """Whether an execution ended in a fault that a GPU reports, so that any checker sees it."""
    return execution.outcome.status not in ("ok", "host_differs", "infrastructure")
