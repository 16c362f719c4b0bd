"""Drive the native process that executes kernels."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import torch

from truekernel.errors import BadInputError, MachineError
from truekernel.execution.simt import wire
from truekernel.execution.simt.kit import server_program
from truekernel.execution.simt.library import Library
from truekernel.execution.simt.outcomes import died, hazard_texts, reported
from truekernel.execution.simt.symbols import source_lines
from truekernel.execution.simt.toolchain import Compiler, default_compiler
from truekernel.model import Configuration, Execution, LaunchPlan, Outcome
from truekernel.numerics.expected import Expected
from truekernel.numerics.formats import DTYPE_NAMES
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
        self._process: subprocess.Popen[bytes] | None = None
        self._cases: dict[str, _Case] = {}
        self._libraries: dict[Path, int] = {}
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
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

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
        tensors = [
            _checked_input(spec.name, inputs, spec.dtype, spec.elements)
            for spec in plan.buffers
            if spec.init == "input"
        ]
        if expected is not None:
            _check_expected(plan, expected)
        number = self._cases[key].number if key in self._cases else self._new_number()
        roles = [_role(plan, k, mutates) for k in range(len(plan.buffers))]
        request = wire.definition(
            number, plan, [wire.tensor_bytes(t) for t in tensors], roles, expected, _stale_bytes(plan, stale)
        )
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
        stop_after_timeout: bool = True,
        stop_at_first_bad: bool = False,
        tolerances: Sequence[tuple[float, float]] = (),
        rhos: Sequence[float] = RHO_LADDER,
    ) -> Run:
        """Run one variant of a library (0: the original of a single library or a schema) on (case key, configuration) pairs.

        `cpu_seconds`: limit of each execution, or one for each; a timeout is repeated alone before it counts. What comes after a
        timeout, or with `stop_at_first_bad` after any outcome but ok, is left out of the result. `tolerances`, `rhos`: as in
        `numerics.statistics`.
        """
        return self.run_many(
            library,
            [variant],
            executions,
            cpu_seconds=cpu_seconds,
            keep_outputs=keep_outputs,
            stop_after_timeout=stop_after_timeout,
            stop_at_first_bad=stop_at_first_bad,
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
        stop_after_timeout: bool = True,
        stop_at_first_bad: bool = False,
        tolerances: Sequence[tuple[float, float]] = (),
        rhos: Sequence[float] = RHO_LADDER,
    ) -> dict[int, Run]:
        """As `run`, for several variants of one library in one request."""
        selected = [library.select(variant) for variant in variants]
        flags = self._flags | keep_outputs * wire.KEEP_OUTPUTS
        flags |= stop_after_timeout * wire.STOP_AFTER_TIMEOUT | stop_at_first_bad * wire.STOP_AT_FIRST_BAD
        limits = [float(cpu_seconds)] * len(executions) if isinstance(cpu_seconds, int | float) else list(cpu_seconds)
        wanted = []
        for (key, configuration), limit in zip(executions, limits, strict=True):
            if configuration.checked != library.checked:
                raise BadInputError(
                    f"configuration with checked={configuration.checked}: the library has checked={library.checked}"
                )
            if key not in self._cases:
                raise BadInputError(f"no case '{key}' is defined: {len(self._cases)} others are")
            wanted.append((self._cases[key].number, configuration, limit))
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
        wanted: list[tuple[int, Configuration, float]],
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
                self._send([wire.run_request(number, flags, wanted, tolerances, rhos, chosen)])
                self._receive(lambda kind, v, e, payload: _take(pending[missing[v]], kind, e, payload))  # noqa: B023
            except _ServerDiedError:
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
        pcs = [pc for report in answers.reports.values() if not report.line for pc in (report.pc, report.other_pc)]
        lines = source_lines(library.path, pcs) if any(pcs) else {}
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

    # ---------------------------------------------------------------- the process

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            program = server_program(self._compiler)
            try:
                self._process = subprocess.Popen(
                    [str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=dict(os.environ)
                )
            except OSError as error:
                raise MachineError(f"can't start {program}: {error.strerror}") from None
            try:
                self._receive()
                for case in self._cases.values():
                    self._send(case.request)
                    self._receive()
            except _ServerDiedError:
                self._process = None
                raise MachineError(f"{program} ends at its start: is there enough memory?") from None
        return self._process

    def _restart(self) -> None:
        self.close()
        self._start()

    def _opened(self, library: Library) -> int:
        if library.path not in self._libraries:
            number = self._new_number()
            self._send([wire.open_request(number, str(library.path), library.kernels)])
            try:
                self._receive()
            except MachineError as error:
                raise _LibraryError(str(error)) from None
            self._libraries[library.path] = number
        return self._libraries[library.path]

    def release(self, library: Library) -> None:
        """Close a library that was run; its file may then be removed."""
        number = self._libraries.pop(library.path, None)
        if number is not None:
            self._ask([wire.simple_request("C", number)])

    def _new_number(self) -> int:
        self._next += 1
        return self._next

    def _ask(self, request: Sequence[bytes | memoryview]) -> None:
        """A request that is answered by "done"; the process is started or replaced when necessary."""
        fresh = self._process is None
        self._start()
        if fresh and request and any(request is case.request for case in self._cases.values()):
            return  # the start has sent it
        try:
            self._send(request)
            self._receive()
        except _ServerDiedError:
            self._restart()

    def _send(self, parts: Sequence[bytes | memoryview]) -> None:
        process = self._start()
        assert process.stdin is not None
        small: list[bytes | memoryview] = []
        try:
            for part in parts:
                if len(part) < 1 << 14:
                    small.append(part)
                    continue
                _write(process.stdin.fileno(), b"".join(small))
                small = []
                _write(process.stdin.fileno(), part)
            _write(process.stdin.fileno(), b"".join(small))
        except OSError:
            raise _ServerDiedError from None

    def _receive(self, take: object = None) -> None:
        """Read answers until "done"; `take(type, variant, execution, payload)` gets the others."""
        assert self._process is not None and self._process.stdout is not None
        read = _Reader(self._process.stdout.fileno())
        while True:
            magic, kind, variant, execution, size = wire.FRAME.unpack(read(wire.FRAME.size))
            if magic != wire.FRAME_MAGIC:
                raise _ServerDiedError
            payload = read(size)
            if kind == wire.DONE:
                return
            if kind == wire.ERROR:
                raise MachineError(payload.decode(errors="replace"))
            if callable(take):
                take(kind, variant, execution, payload)


class _LibraryError(Exception):
    """A library can't be opened: it needs something that no source defines."""


class _ServerDiedError(Exception):
    """The native process has ended or lost its way."""


class _Reader:
    """Exact reads from a pipe, with a buffer. Nothing may be left in it at the end of an answer."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = b""

    def __call__(self, n: int) -> bytes:
        if len(self._buffer) < n:
            pieces, have = [self._buffer], len(self._buffer)
            while have < n:
                piece = os.read(self._descriptor, max(1 << 16, n - have))
                if not piece:
                    raise _ServerDiedError
                pieces.append(piece)
                have += len(piece)
            self._buffer = b"".join(pieces)
        result, self._buffer = self._buffer[:n], self._buffer[n:]
        return result


def _write(descriptor: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


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


def _role(plan: LaunchPlan, k: int, mutates: Sequence[str]) -> int:
    spec = plan.buffers[k]
    if spec.init == "input":
        return wire.ROLE_INPUT | (wire.ROLE_MUTABLE if k in plan.outputs or spec.name in mutates else 0)
    return wire.ROLE_ZEROED if spec.init == "zeros" else wire.ROLE_SCRATCH


def _checked_input(name: str, inputs: Mapping[str, torch.Tensor], dtype: str, elements: int) -> torch.Tensor:
    tensor = inputs.get(name)
    if tensor is None:
        raise BadInputError(f"no input '{name}': given are {', '.join(inputs) or 'none'}")
    if DTYPE_NAMES.get(tensor.dtype) != dtype or tensor.numel() != elements:
        raise BadInputError(
            f"input '{name}' has {tensor.numel()} elements of {tensor.dtype}, wanted {elements} of {dtype}"
        )
    return tensor


def _check_expected(plan: LaunchPlan, expected: Sequence[Expected]) -> None:
    if len(expected) != len(plan.outputs):
        raise BadInputError(f"{len(expected)} expected outputs for a plan with {len(plan.outputs)}")
    for buffer, want in zip(plan.outputs, expected, strict=True):
        spec = plan.buffers[buffer]
        if want.elements != spec.elements or want.dtype != spec.dtype:
            raise BadInputError(
                f"expected '{want.name}' has {want.elements} elements of {want.dtype}, the plan {spec.elements} of {spec.dtype}"
            )


def _stale_bytes(plan: LaunchPlan, stale: Sequence[torch.Tensor] | None) -> list[tuple[int, memoryview | bytes]]:
    if stale is None:
        return []
    if len(stale) != len(plan.outputs):
        raise BadInputError(f"{len(stale)} stale tensors for a plan with {len(plan.outputs)} outputs")
    leftovers = b"".join(bytes(wire.tensor_bytes(t)) for t in stale)
    own = {buffer: wire.tensor_bytes(t) for buffer, t in zip(plan.outputs, stale, strict=True)}
    result: list[tuple[int, memoryview | bytes]] = []
    for k, spec in enumerate(plan.buffers):
        if spec.init != "empty" or not spec.nbytes:
            continue
        data = own.get(k, b"")
        if len(data) < spec.nbytes and leftovers:
            data = (leftovers * (spec.nbytes // len(leftovers) + 1))[: spec.nbytes]
        if data:
            result.append((k, data[: spec.nbytes]))
    return result
