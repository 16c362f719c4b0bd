"""One variant's executions as requests to workers: together with others' in a shared worker, or alone in a fresh one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from truekernel.errors import GpuMemoryError, MachineError
from truekernel.execution.cuda.judging import judge_library
from truekernel.execution.cuda.library import Library
from truekernel.execution.cuda.wire_cases import CaseMessage
from truekernel.execution.cuda.worker_process import Answer, RunEnd, WorkerDiedError, WorkerProcess, too_large
from truekernel.execution.cuda.workers import Workers
from truekernel.model import Fill

SHARED_PATIENCE = 1.5
"""Times its limit that an execution gets where a timeout would cost a context and not count."""
HANGING_PATIENCE = 0.5
"""That of a library that is known to hang."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One execution: `seconds` is its limit; `outputs`: whether they are to be sent back; `judges`: kernels that judge them on the device, none where
    nothing is to be judged there."""

    key: str
    case: CaseMessage
    fill: Fill
    seconds: float
    outputs: bool
    judges: tuple[str, ...] = ()
    series: int = 0
    """Bits of the series that it belongs to."""


@dataclass(slots=True)
class Attempt:
    """What is asked of one library. `ended`: bits of the series that a fault has ended; an execution all of whose series have ended is left out."""

    library: Library
    wanted: Sequence[Wanted]
    tolerances: Sequence[tuple[float, float]] = ()
    rhos: Sequence[float] = ()
    ended: int = 0
    late: set[int] = field(default_factory=set)
    """Executions that have timed out once."""
    hangs: bool = False
    """A timeout of this library has been repeated in another worker: further ones count at once."""
    bare: bool = False
    """Without the sink that takes stray accesses."""
    verify: bool = False
    """Have the worker look at all resident contents after its requests."""
    changed: bool = False
    """Whether it found them changed."""

    def on_host(self) -> Attempt:
        """The same with outputs sent back instead of judged on the device."""
        wanted = [replace(w, outputs=w.outputs or bool(w.judges), judges=()) for w in self.wanted]
        return replace(self, wanted=wanted, ended=0)

    def shared(
        self, worker: WorkerProcess, *, strict: bool, proven: bool
    ) -> tuple[dict[int, Answer], list[int]] | None:
        """Answers by number, and what is left for another worker since this one is lost; None when nothing counts, and the attempt can be made again.

        `strict`: whatever is suspicious counts for nothing. Otherwise overwritten red zones and inputs are put back, and a fault counts where the
        worker was `proven` sound just before. A timeout never counts here unless the library `hangs`. Raises WorkerDiedError, LibraryError, GpuMemoryError.
        """
        answers: dict[int, Answer] = {}
        left = list(range(len(self.wanted)))
        while left:
            some, end = self._request(worker, left, mend=not strict, patience=SHARED_PATIENCE)
            if not some:
                raise WorkerDiedError("no answer to a request")
            late = {number for number, answer in some.items() if answer.status == "timeout" and not self.hangs}
            self.late |= late
            self.changed |= end.changed
            suspicious = any(answer.suspicious for answer in some.values())
            if late or (strict and suspicious) or (end.fatal and not proven):
                self.ended = 0
                return None
            answers.update(some)
            left = self._left(left, some)
            worker.contents.difference_update(end.spoiled)
            if end.fatal:
                return answers, left
        return answers, []

    def alone(self, workers: Workers, numbers: Sequence[int] | None = None) -> dict[int, Answer]:
        """Answers by number, of all executions or of some, from workers that serve nothing else; the last one is left at work if it lives.

        A timeout is repeated in another worker before it counts. Raises MachineError when workers die twice without a word.
        """
        answers: dict[int, Answer] = {}
        deaths = 0
        left = list(range(len(self.wanted)) if numbers is None else numbers)
        while left:
            worker = workers.ready()
            try:
                try:
                    some, end = self._request(worker, left, mend=True)
                except GpuMemoryError:
                    workers.settle()  # what was killed a moment ago may still hold memory
                    some, end = self._request(worker, left, mend=True)
                if not some:
                    raise WorkerDiedError("no answer to a request")
            except WorkerDiedError as error:
                workers.retire("died")
                deaths += 1
                if deaths == 2:
                    raise MachineError(f"GPU workers died twice on the same request: {error}") from None
                continue
            slow = {k for k, a in some.items() if a.status == "timeout"}
            late = set() if self.hangs else slow - self.late
            self.hangs |= bool(slow & self.late)
            self.late |= late
            for number in late:
                del some[number]
            answers.update(some)
            left = self._left(left, some)
            if end.fatal:
                workers.retire(f"{'timeout' if slow else 'fault'} alone")
            worker.contents.difference_update(end.spoiled)
        return answers

    def _left(self, left: list[int], some: dict[int, Answer]) -> list[int]:
        """What is still to be executed after the answers `some`."""
        for number, answer in some.items():
            if answer.status != "ok":
                self.ended |= self.wanted[number].series
        series = {number: self.wanted[number].series for number in left}
        return [n for n in left if n not in some and not (series[n] and not series[n] & ~self.ended)]

    def _request(
        self, worker: WorkerProcess, numbers: list[int], *, mend: bool, patience: float = 1.0
    ) -> tuple[dict[int, Answer], RunEnd]:
        """Run some of the executions; one at a time where their cases do not fit together."""
        try:
            worker.hold((self.wanted[number].case for number in numbers), self.wanted[numbers[0]].key)
            found, end = self._send(worker, numbers, mend=mend, patience=patience)
            if not any(a.status == "memory" for a in found.values()):
                return found, end
        except GpuMemoryError:
            found = {}
        done = {k: a for k, a in found.items() if a.status != "memory"}
        if done:
            return done, RunEnd((), False, False)
        first = numbers[0]
        worker.empty()
        worker.hold([self.wanted[first].case], self.wanted[first].key)
        found, end = self._send(worker, [first], mend=mend, patience=patience)
        for answer in found.values():
            if answer.status == "memory":
                needed = sum(b["nbytes"] for b in self.wanted[first].case.message["buffers"])
                raise too_large(self.wanted[first].key, worker.name, needed, min(worker.free_at_start, needed - 1))
        return found, end

    def _send(
        self, worker: WorkerProcess, numbers: list[int], *, mend: bool, patience: float
    ) -> tuple[dict[int, Answer], RunEnd]:
        found: dict[int, Answer] = {}
        lacking = {kernel for number in numbers for kernel in self.wanted[number].judges} - worker.judges
        if lacking:
            worker.load_judges(judge_library(tuple(sorted(lacking)), worker.arch))
        request = {
            "ask": "run",
            "library": worker.load(self.library),
            "symbols": dict(self.library.symbols),
            "fresh": self.library.stateful,
            "mend": mend,
            "bare": self.bare,
            "verify": self.verify,
            "ended": self.ended,
            "tolerances": [list(pair) for pair in self.tolerances],
            "rhos": list(self.rhos),
            "executions": [
                {
                    "key": w.key,
                    "fill": w.fill,
                    "seconds": w.seconds * (HANGING_PATIENCE if self.hangs else patience),
                    "outputs": w.outputs,
                    "judge": bool(w.judges),
                    "series": w.series,
                }
                for w in (self.wanted[number] for number in numbers)
            ],
        }
        end = worker.run(request, lambda at, answer: found.__setitem__(numbers[at], answer))
        return found, end
