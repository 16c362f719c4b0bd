"""What honest variants show on the requests of the witness search, executed as far as a mutant makes it necessary."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from truekernel.audit.builds import Build
from truekernel.execution.backend import Ceiling
from truekernel.model import Execution
from truekernel.trial.gate import wrong
from truekernel.trial.stage import Request
from truekernel.trial.witness import MARGIN, HonestRange, proves_wrong

NOTHING = HonestRange.of(())


class HonestRanges:
    """Ranges by request, over all of `builds` that are right there. `execute` runs a build on one request.

    More honest programs widen a range, which can only clear a mutant: most are cleared by the programs as written, so that the other variants run where something is about to be proved, and nowhere else.
    """

    def __init__(self, execute: Callable[[Build, Request], list[Execution]]) -> None:
        self.builds: list[Build] = []
        self._execute = execute
        self._ranges: dict[Request, HonestRange] = {}
        self._asked: dict[Request, set[int]] = {}
        self._at_first: dict[Request, HonestRange] = {}

    def add(self, build: Build, executions: Iterable[Execution]) -> None:
        """A build, and what set-up executed of it."""
        self.builds.append(build)
        for execution in executions:
            self._note(len(self.builds) - 1, execution)
            request = execution.case_id, execution.configuration
            self._at_first[request] = self._ranges[request]

    def ceiling(self, request: Request) -> Ceiling:
        """What an execution may show without proving anything, as far as builds have executed the request."""
        honest = self._range(request)
        return MARGIN * honest.worst, honest.nonfinite

    def prove(self, execution: Execution) -> tuple[str | None, HonestRange]:
        """Why an execution proves its program wrong, or None; and the range: of all builds where one is needed for a proof, else (of a fault, which needs none) what set-up made."""
        request = execution.case_id, execution.configuration
        if execution.outcome.status != "ok":
            honest = self._at_first.get(request, NOTHING)
            return proves_wrong(execution, honest), honest
        for number, build in enumerate(self.builds):
            if proves_wrong(execution, self._range(request)) is None:
                break
            if number not in self._asked.get(request, ()):
                for again in self._execute(build, request):
                    self._note(number, again)
        honest = self._range(request)
        return proves_wrong(execution, honest), honest

    def _range(self, request: Request) -> HonestRange:
        return self._ranges.get(request, NOTHING)

    def _note(self, number: int, execution: Execution) -> None:
        request = execution.case_id, execution.configuration
        self._asked.setdefault(request, set()).add(number)
        so_far = self._range(request)
        shown = NOTHING if wrong([execution]) else HonestRange.of([execution])
        self._ranges[request] = HonestRange(max(so_far.worst, shown.worst), so_far.nonfinite or shown.nonfinite)
