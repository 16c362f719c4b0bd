"""Drive the native process that executes kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import torch

from truekernel.errors import BadInputError, MachineError
from truekernel.execution.backend import NO_CEILING, Ceiling
from truekernel.execution.simt import wire
from truekernel.execution.simt.definitions import definition
from truekernel.execution.simt.kit import server_program
from truekernel.execution.simt.library import Library
from truekernel.execution.simt.native_process import NativeProcess, ProcessDiedError
from truekernel.execution.simt.outcomes import died, hazard_texts, reported
from truekernel.execution.simt.symbols import source_lines
from truekernel.execution.simt.toolchain import Compiler, default_compiler
from truekernel.model import Configuration, Execution, LaunchPlan, Outcome
from truekernel.numerics.expected import Expected
from truekernel.numerics.statistics import RHO_LADDER, statistic_names

DEFAULT_CPU_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Run:
    """What one variant did: an execution for each that was asked for, in that order, and outputs (one tensor for each
    output of the plan; None where the execution did not end well, or outputs were not to be kept)."""

    executions: list[Execution]
    outputs: list[list[torch.Tensor] | None]


@dataclass(slots=True)
class _Case:
    number: int
    plan: LaunchPlan
    request: list[bytes | memoryview]
    compares: bool


@dataclass(slots=True)
class _Pending:
    """Answers of one variant, still as they came."""

    records: dict[int, wire.Record] = field(default_factory=dict)
    reports: dict[int, wire.Report] = field(default_factory=dict)
    deaths: dict[int, tuple[bool, int]] = field(default_factory=dict)
    skipped: set[int] = field(default_factory=set)


class Server:
    """One native process; it forks a child for each variant. Use as a context manager.

    Cases are defined once and kept in the native process. It survives whatever a kernel does; should it end all the same, it is started again
    with all its cases, and only what fails twice becomes the outcome "infrastructure".
    """

    def __init__(self, compiler: Compiler | None = None, *, allow_system_calls: bool = False) -> None:
        self._compiler = compiler or default_compiler()
        self._flags = wire.ALLOW_SYSTEM_CALLS if allow_system_calls else 0
        self._process: NativeProcess | None = None
        self._cases: dict[str, _Case] = {}
        self._libraries: dict[Path, int] = {}
        self._lines: dict[Path, dict[int, int]] = {}
        self._next = 1

    def __enter__(self) -> Server:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the native process."""
        process, self._process = self._process, None
        self._libraries.clear()
        if process is not None:
            process.close()

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
        """Define (or replace) the case `key`.

        `inputs`: one tensor for each input buffer of the plan, of its dtype and number of elements. `expected`: one for each output;
        without, executions have no statistics. `stale`: one tensor for each output, what an allocator would have left in its
        memory; other empty buffers get the bytes of these, one after the other and again from the start. `mutates`: inputs that may be
        written. Raises BadInputError when tensors do not fit the plan.
        """
        number = self._cases[key].number if key in self._cases else self._new_number()
        request = definition(number, plan, inputs, expected, stale, mutates)
        self._cases[key] = _Case(number, plan, request, expected is not None)
        self._ask(request)

    def forget(self, key: str) -> None:
        """Give a case's memory back."""
        self._ask([wire.simple_request("F", self._cases.pop(key).number)])

    def run(
        self,
        library: Library,
        variant: int,
        executions: Sequence[tuple[str, Configuration]],
        *,
        cpu_seconds: float | Sequence[float] = DEFAULT_CPU_SECONDS,
        keep_outputs: bool = False,
        series: Sequence[int] | None = None,
        ceilings: Sequence[Ceiling] | None = None,
        tolerances: Sequence[tuple[float, float]] = (),
        rhos: Sequence[float] = RHO_LADDER,
    ) -> Run:
        """Run one variant of a library (0: the original of a single library or a schema) on (case key, configuration) pairs.

        `cpu_seconds`: limit of each execution, or one for each; a timeout is repeated alone before it counts. `series`: for each
        execution the bits of the series that it belongs to (0: none). A fault that a GPU would notice too (all but a race, an uninitialised
        read and host arithmetic) ends its series, and so do statistics beyond the execution's ceiling; an execution all of whose series have ended is left out of the result. `tolerances`, `rhos`: as in `numerics.statistics`.
        """
        return self.run_many(
            library,
            [variant],
            executions,
            cpu_seconds=cpu_seconds,
            keep_outputs=keep_outputs,
            series=series,
            ceilings=ceilings,
            tolerances=tolerances,
            rhos=rhos,
        )[variant]

    def run_many(
        self,
        library: Library,
        variants: Sequence[int],
        executions: Sequence[tuple[str, Configuration]],
        *,
        cpu_seconds: float | Sequence[float] = DEFAULT_CPU_SECONDS,
        keep_outputs: bool = False,
        series: Sequence[int] | None = None,
        ceilings: Sequence[Ceiling] | None = None,
        tolerances: Sequence[tuple[float, float]] = (),
        rhos: Sequence[float] = RHO_LADDER,
    ) -> dict[int, Run]:
        """As `run`, for several variants of one library in one request."""
        selected = [library.select(variant) for variant in variants]
        flags = self._flags | keep_outputs * wire.KEEP_OUTPUTS
        limits = [float(cpu_seconds)] * len(executions) if isinstance(cpu_seconds, int | float) else list(cpu_seconds)
        wanted: list[wire.Wanted] = []
        bits = series if series is not None else [0] * len(executions)
        ends = ceilings if ceilings is not None else [NO_CEILING] * len(executions)
        for (key, configuration), limit, member_of, ceiling in zip(executions, limits, bits, ends, strict=True):
            if configuration.checked != library.checked:
                raise BadInputError(
                    f"configuration with checked={configuration.checked}: the library has checked={library.checked}"
                )
            if key not in self._cases:
                raise BadInputError(f"no case '{key}' is defined: {len(self._cases)} others are")
            wanted.append((self._cases[key].number, configuration, limit, member_of, ceiling))
        failure: Outcome | None = None
        pending = [_Pending() for _ in variants]
        try:
            self._run(library, flags, wanted, tolerances, rhos, selected, pending)
        except _LibraryError as error:
            failure = Outcome("compile_error", message=str(error))
        except MachineError as error:
            failure = Outcome("infrastructure", message=str(error))
        names = statistic_names(tolerances, rhos)
        runs = {}
        for variant, answers in zip(variants, pending, strict=True):
            runs[variant] = self._finish(library, executions, answers, names, failure)
        return runs

    def _run(
        self,
        library: Library,
        flags: int,
        wanted: list[wire.Wanted],
        tolerances: Sequence[tuple[float, float]],
        rhos: Sequence[float],
        selected: list[tuple[int, int]],
        pending: list[_Pending],
    ) -> None:
        """Fill `pending`; when the native process dies, once more for what it had not finished."""
        for attempt in range(2):
            missing = [k for k, answers in enumerate(pending) if _count(answers) < len(wanted)]
            try:
                number = self._opened(library)
                chosen = [selected[k] for k in missing]
                process = self._start()
                process.send([wire.run_request(number, flags, wanted, tolerances, rhos, chosen)])
                process.receive(lambda kind, v, e, payload: _take(pending[missing[v]], kind, e, payload))  # noqa: B023
            except ProcessDiedError:
                self._restart()
                if attempt:
                    raise MachineError("the native process died twice on the same request") from None
            else:
                return

    def _finish(
        self,
        library: Library,
        executions: Sequence[tuple[str, Configuration]],
        answers: _Pending,
        names: Sequence[str],
        failure: Outcome | None,
    ) -> Run:
        lines = self._source_lines(library, answers.reports.values())
        run = Run([], [])
        for k, (key, configuration) in enumerate(executions):
            case = self._cases[key]
            outputs: list[torch.Tensor] | None = None
            statistics: dict[str, float] = {}
            output_hash = ""
            hazards: tuple[str, ...] = ()
            if k in answers.reports:
                outcome = reported(answers.reports[k], case.plan, lines)
            elif k in answers.deaths:
                outcome = died(*answers.deaths[k])
            elif k in answers.records:
                record = answers.records[k]
                outcome = Outcome("ok", seconds=record.seconds)
                output_hash, hazards = record.output_hash, hazard_texts(record.hazards, case.plan)
                statistics = dict(zip(names, record.statistics, strict=True)) if case.compares else {}
                outputs = (
                    wire.output_tensors(record.outputs, case.plan) if record.outputs or not _bytes(case.plan) else None
                )
            elif failure is not None:
                outcome = failure
            else:
                continue
            run.executions.append(Execution(key, configuration, outcome, statistics, output_hash, hazards))
            run.outputs.append(outputs)
        return run

    def _source_lines(self, library: Library, reports: Iterable[wire.Report]) -> dict[int, int]:
        """Source lines of the code offsets in reports; a symboliser is asked once for each."""
        known = self._lines.setdefault(library.path, {})
        wanted = {pc for r in reports for pc in ((0 if r.line else r.pc), r.other_pc)} - {0} - known.keys()
        if wanted:
            found = source_lines(library.path, wanted)
            known.update({pc: found.get(pc, 0) for pc in wanted})
        return {pc: line for pc, line in known.items() if line}

    # ---------------------------------------------------------------- the process

    def _start(self) -> NativeProcess:
        if self._process is None:
            self._process = NativeProcess(server_program(self._compiler))
            try:
                for case in self._cases.values():
                    self._process.send(case.request)
                    self._process.receive()
            except ProcessDiedError:
                self.close()
                raise MachineError(
                    "the native process died while cases were defined: is there enough memory?"
                ) from None
        return self._process

    def _restart(self) -> None:
        self.close()
        self._start()

    def _opened(self, library: Library) -> int:
        if library.path not in self._libraries:
            number = self._new_number()
            process = self._start()
            process.send([wire.open_request(number, str(library.path), library.kernels)])
            try:
                process.receive()
            except MachineError as error:
                raise _LibraryError(str(error)) from None
            self._libraries[library.path] = number
        return self._libraries[library.path]

    def release(self, library: Library) -> None:
        """Close a library that was run; its file may then be removed."""
        self._lines.pop(library.path, None)
        number = self._libraries.pop(library.path, None)
        if number is not None:
            self._ask([wire.simple_request("C", number)])

    def _new_number(self) -> int:
        self._next += 1
        return self._next

    def _ask(self, request: Sequence[bytes | memoryview]) -> None:
        """A request that is answered by "done"; the process is started or replaced when necessary."""
        fresh = self._process is None
        process = self._start()
        if fresh and request and any(request is case.request for case in self._cases.values()):
            return  # the start has sent it
        try:
            process.send(request)
            process.receive()
        except ProcessDiedError:
            self._restart()


class _LibraryError(Exception):
    """A library can't be opened: it needs something that no source defines."""


def _count(answers: _Pending) -> int:
    return len(answers.records.keys() | answers.reports.keys() | answers.deaths.keys() | answers.skipped)


def _take(answers: _Pending, kind: int, execution: int, payload: bytes) -> None:
    if kind == wire.RECORD:
        answers.records[execution] = wire.read_record(payload)
    elif kind == wire.REPORT:
        answers.reports[execution] = wire.read_report(payload)
    elif kind == wire.DEATH:
        overdue, status = int.from_bytes(payload[:4], "little"), int.from_bytes(payload[4:8], "little", signed=True)
        answers.deaths[execution] = bool(overdue), status
    else:
        answers.skipped.add(execution)


def _bytes(plan: LaunchPlan) -> int:
    return sum(plan.buffers[k].nbytes for k in plan.outputs)
