"""Execute kernels on a GPU in worker processes that may die without harm."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType

import torch

from truekernel.errors import BadInputError, GpuMemoryError, MachineError
from truekernel.execution.cuda.judging import judge, judge_kernels, output_tensors
from truekernel.execution.cuda.library import Library
from truekernel.execution.cuda.outcomes import hazard_texts, outcome_of
from truekernel.execution.cuda.requests import Attempt, Wanted
from truekernel.execution.cuda.wire_cases import CaseMessage, case_message, check_expected
from truekernel.execution.cuda.worker_process import Answer, LibraryError, WorkerDiedError, WorkerProcess
from truekernel.execution.cuda.workers import Workers
from truekernel.execution.simt.server import Run
from truekernel.model import Configuration, Execution, LaunchPlan, Outcome, Schedule
from truekernel.numerics.expected import Expected
from truekernel.numerics.statistics import RHO_LADDER

DEFAULT_SECONDS = 20.0
LEAST_SECONDS = 1.0
"""Several processes take turns on a GPU, and all wait while one makes a context: shorter limits would catch kernels that only had to wait. What hangs costs three times that."""
SENTINEL_RUNS = 16
"""What does not give the same bits so many times is no sentinel."""
SCHEDULES: tuple[Schedule, ...] = ("gpu",)
"""A GPU schedules by itself."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """How often an execution that was repeated differed. `differing`: repetitions whose output, or outcome, is not that of the first; `of`:
    repetitions after the first. Their quotient is a kill probability when the first is right."""

    executions: list[Execution]
    differing: int
    of: int


@dataclass(slots=True)
class _Case:
    plan: LaunchPlan
    message: CaseMessage
    expected: Sequence[Expected] | None


@dataclass(frozen=True, slots=True)
class _Sentinel:
    library: Library
    key: str
    digest: str


class Server:
    """Runs variants in one worker at a time; use as a context manager. Several servers may share a GPU.

    After every request the worker is proven sound: all resident contents hash as they did, and the sentinel gives its bits. A fault that sticks, a
    timeout, changed contents or a changed sentinel ends it; what ran since the last proof counts for nothing and is decided alone in a fresh process.
    Two things need no fresh process, since nothing but the variant at hand ran since the last proof: an overwritten red zone or input is put back and the
    proof repeated, and a fault counts at once where a sentinel is watched. `strict`: they too end the worker and are decided alone; each costs
    one or two starts of a process, and a GPU makes only a few contexts a second, however many processes ask.
    `keep`: leave workers to the next server of this process when this one is closed.
    """

    schedules = SCHEDULES

    def __init__(self, device: int = 0, *, strict: bool = False, keep: bool = False) -> None:
        self._strict = strict
        self._workers = Workers(device, keep=keep)
        self._hanging: list[Library] = []
        self._cases: dict[str, _Case] = {}
        self._users: Counter[str] = Counter()
        self._sentinel: _Sentinel | None = None
        self._probed = False

    def __enter__(self) -> Server:
        self._workers.ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def prepare(self) -> None:
        """Have a worker start while this process does something else."""
        self._workers.prepare()

    def close(self) -> None:
        """End all processes; cases stay defined."""
        self._workers.close()

    @property
    def workers_started(self) -> int:
        """Processes that were put to work so far: one more for each that had to end."""
        return self._workers.started

    @property
    def workers_ended(self) -> Counter[str]:
        """Processes that had to end, by what they ended of."""
        return self._workers.ended

    @property
    def gpu(self) -> str:
        """Name of the GPU, "" before the first worker started."""
        return self._workers.name

    def define(
        self,
        key: str,
        plan: LaunchPlan,
        inputs: Mapping[str, torch.Tensor],
        expected: Sequence[Expected] | None = None,
        stale: Sequence[torch.Tensor] | None = None,
        *,
        mutates: Sequence[str] = (),
    ) -> None:
        """Define (or replace) the case `key`; arguments as for `simt.Server.define`. Tensors must not change afterwards.

        Contents go to the GPU with the first execution that needs them; equal ones lie there once. Raises BadInputError when tensors do
        not fit the plan.
        """
        if expected is not None:
            check_expected(plan, expected)
        message = case_message(key, plan, inputs, stale, mutates, expected)
        if key in self._cases:
            self.forget(key)
        self._cases[key] = _Case(plan, message, expected)
        self._users.update(message.contents.keys())

    def forget(self, key: str) -> None:
        """Give a case's memory back."""
        case = self._cases.pop(key)
        self._users.subtract(case.message.contents.keys())
        unused = [name for name in case.message.contents if self._users[name] <= 0]
        if self._sentinel is not None and self._sentinel.key == key:
            self._sentinel = None
        worker = self._workers.working
        if worker is not None:
            try:
                worker.drop([key], unused)
            except WorkerDiedError:
                self._workers.retire("died")

    def release(self, library: Library) -> None:
        """Forget a library that was run."""
        self._hanging = [other for other in self._hanging if other is not library]
        if self._sentinel is not None and self._sentinel.library is library:
            self._sentinel = None
        worker = self._workers.working
        if worker is not None:
            try:
                worker.unload(library)
            except WorkerDiedError:
                self._workers.retire("died")

    def watch(self, library: Library, key: str) -> bool:
        """Take a library that is right as the sentinel: it runs case `key` again after every request, and must give the same bits.

        False, and no sentinel, when it does not end well or `SENTINEL_RUNS` of it differ (sums by atomics do): where it ends well, a probe kernel of ours is the
        sentinel then. The last one that was taken counts.
        """
        self._sentinel = None
        runs = self.run(library, 0, [(key, Configuration())] * SENTINEL_RUNS).executions
        self._probed = all(e.outcome.status == "ok" and not e.hazards for e in runs)
        digests = {e.output_hash for e in runs}
        if len(digests) != 1 or not self._probed:
            return False
        self._sentinel = _Sentinel(library, key, digests.pop())
        return True

    def run(
        self,
        library: Library,
        variant: int,
        executions: Sequence[tuple[str, Configuration]],
        *,
        cpu_seconds: float | Sequence[float] = DEFAULT_SECONDS,
        keep_outputs: bool = False,
        series: Sequence[int] | None = None,
        tolerances: Sequence[tuple[float, float]] = (),
        rhos: Sequence[float] = RHO_LADDER,
        bare: bool = False,
    ) -> Run:
        """Run a library on (case key, configuration) pairs, as `simt.Server.run`; `variant` is 0.

        `cpu_seconds`: limit of each execution, here of wall time; never less than `LEAST_SECONDS`. `Outcome.seconds` is device time.
        `series`: for each execution the bits of the series that it belongs to (0: none); a fault ends its series, and an execution all of whose series
        have ended is left out of the result. `bare`: let stray accesses end the context (`address_space`).
        Raises GpuMemoryError for a case that does not fit, BadInputError for a configuration that a GPU does not serve.
        """
        library.select(variant)
        limits = [float(cpu_seconds)] * len(executions) if isinstance(cpu_seconds, int | float) else list(cpu_seconds)
        bits = series if series is not None else [0] * len(executions)
        judged = tolerances, rhos
        wanted = [
            replace(self._wanted(library, key, configuration, keep_outputs, *judged), seconds=limit, series=member_of)
            for (key, configuration), limit, member_of in zip(
                executions, (max(limit, LEAST_SECONDS) for limit in limits), bits, strict=True
            )
        ]
        hangs = any(other is library for other in self._hanging)
        attempt = Attempt(library, wanted, tolerances, rhos, hangs=hangs, bare=bare)
        try:
            answers = self._decide(attempt)
            failure = None
        except LibraryError as error:
            answers, failure = {}, Outcome("compile_error", message=str(error))
        except MachineError as error:
            answers, failure = {}, Outcome("infrastructure", message=str(error))
        if attempt.hangs and not hangs:
            self._hanging.append(library)
        run = Run([], [])
        for number, (key, configuration) in enumerate(executions):
            if failure is None and number not in answers:
                continue
            answer = answers.get(number)
            execution, outputs = self._finished(key, configuration, answer, failure, tolerances, rhos)
            run.executions.append(execution)
            run.outputs.append(outputs if keep_outputs else None)
        return run

    def run_many(
        self,
        library: Library,
        variants: Sequence[int],
        executions: Sequence[tuple[str, Configuration]],
        *,
        cpu_seconds: float | Sequence[float] = DEFAULT_SECONDS,
        keep_outputs: bool = False,
        series: Sequence[int] | None = None,
        tolerances: Sequence[tuple[float, float]] = (),
        rhos: Sequence[float] = RHO_LADDER,
    ) -> dict[int, Run]:
        """As `run`, for several variants of one library (there is only number 0)."""
        return {
            variant: self.run(
                library,
                variant,
                executions,
                cpu_seconds=cpu_seconds,
                keep_outputs=keep_outputs,
                series=series,
                tolerances=tolerances,
                rhos=rhos,
            )
            for variant in variants
        }

    def repeat(
        self,
        library: Library,
        key: str,
        configuration: Configuration,
        times: int,
        *,
        cpu_seconds: float = DEFAULT_SECONDS,
    ) -> Repeats:
        """Execute the same thing `times` times (2 or more) and tell how often it differs from the first."""
        if times < 2:
            raise BadInputError(f"times={times}: an execution is repeated 2 times or more")
        executions = self.run(library, 0, [(key, configuration)] * times, cpu_seconds=cpu_seconds).executions
        first = executions[0]
        differing = sum(
            e.outcome.status != first.outcome.status or e.output_hash != first.output_hash for e in executions[1:]
        )
        return Repeats(executions, differing, len(executions) - 1)

    # ---------------------------------------------------------------- deciding

    def _wanted(
        self,
        library: Library,
        key: str,
        configuration: Configuration,
        keep: bool,
        tolerances: Sequence[tuple[float, float]],
        rhos: Sequence[float],
    ) -> Wanted:
        if configuration.checked or library.checked:
            raise BadInputError("a sanitised execution is asked for: on a GPU use cuda.sanitise")
        if configuration.schedule not in SCHEDULES:
            raise BadInputError(f"schedule '{configuration.schedule}': a GPU schedules by itself, use 'gpu'")
        if key not in self._cases:
            raise BadInputError(f"no case '{key}' is defined: {len(self._cases)} others are")
        case = self._cases[key]
        judges = judge_kernels(case.expected, tolerances, rhos) if case.expected else ()
        return Wanted(key, case.message, configuration.fill, DEFAULT_SECONDS, keep, judges)

    def _decide(self, attempt: Attempt) -> dict[int, Answer]:
        """Answers of all executions that count, by number."""
        worker = self._workers.ready()
        if worker.served:
            answers = self._shared(worker, attempt)
            if answers is not None:
                return answers
            self._workers.retire("void")
        answers = attempt.alone(self._workers)
        if self._left_sound(answers):
            return answers
        # A stray write, which may have hit the references too: judge once more, here.
        answers = attempt.on_host().alone(self._workers)
        self._workers.retire("changed contents")
        for answer in answers.values():
            if answer.status == "ok" and not answer.suspicious:
                answer.hazards.append(("far", -1, 0))
        return answers

    def _shared(self, worker: WorkerProcess, attempt: Attempt) -> dict[int, Answer] | None:
        """Answers from a worker that has served others; None when they do not count."""
        proven = (self._sentinel is not None or self._probed) and not self._strict
        with contextlib.suppress(WorkerDiedError):
            found = attempt.shared(worker, strict=self._strict, proven=proven)
            if found is None:
                return None
            answers, left = found
            lost = [answer.status for answer in answers.values() if answer.status in ("fault", "timeout")]
            if lost:
                self._workers.retire(lost[0])
                return answers | (attempt.alone(self._workers, left) if left else {})
            if self._sound(worker):
                return answers
        return None

    def _left_sound(self, answers: Mapping[int, Answer]) -> bool:
        """After a variant that was alone: end its worker unless all is as it was, or has been mended. False for changes that nothing announced."""
        worker = self._workers.working
        if worker is None:
            return True
        sound = False
        with contextlib.suppress(WorkerDiedError, LibraryError):
            sound = self._sound(worker)
        if not sound or (self._strict and any(answer.suspicious for answer in answers.values())):
            self._workers.retire("changed contents")
        return sound or any(answer.suspicious for answer in answers.values())

    def _sound(self, worker: WorkerProcess) -> bool:
        """Whether the sentinel gives its bits, and resident contents are unchanged then."""
        sentinel = self._sentinel
        if sentinel is None:
            return worker.ask({"ask": "verify"}).get("changed") is None
        digests = self._sentinel_runs(worker, sentinel, 1)
        if digests == {sentinel.digest}:
            return True
        again = self._sentinel_runs(worker, sentinel, SENTINEL_RUNS) if digests else set()
        if len(again) < 2 and sentinel.digest not in again:
            return False
        # It does not always give the same bits after all, and is of no use.
        self._sentinel, self._probed = None, True
        return True

    def _sentinel_runs(self, worker: WorkerProcess, sentinel: _Sentinel, times: int) -> set[str]:
        """Digests of some runs of the sentinel; none when one does not end well, or resident contents have changed."""
        case = self._cases[sentinel.key]
        wanted = Wanted(sentinel.key, case.message, "poison", DEFAULT_SECONDS, False)
        attempt = Attempt(sentinel.library, [wanted] * times, verify=True)
        found = attempt.shared(worker, strict=True, proven=False)
        if found is None or attempt.changed or any(answer.status != "ok" for answer in found[0].values()):
            return set()
        return {answer.digest for answer in found[0].values()}

    def _finished(
        self,
        key: str,
        configuration: Configuration,
        answer: Answer | None,
        failure: Outcome | None,
        tolerances: Sequence[tuple[float, float]],
        rhos: Sequence[float],
    ) -> tuple[Execution, list[torch.Tensor] | None]:
        case = self._cases[key]
        if answer is None:
            assert failure is not None
            return Execution(key, configuration, failure), None
        if answer.status == "memory":
            raise GpuMemoryError(answer.text)
        outcome = outcome_of(answer, case.plan)
        if outcome.status != "ok":
            return Execution(key, configuration, outcome), None
        outputs = output_tensors(answer.outputs, case.plan) if answer.outputs else None
        statistics: Mapping[str, float] = {}
        if case.expected is not None:
            statistics = judge(answer.values, outputs, case.expected, configuration.fill, tolerances, rhos)
        hazards = hazard_texts(answer.hazards, case.plan)
        return Execution(key, configuration, outcome, statistics, answer.digest, hazards), outputs
