"""A candidate's process behind walls, and the cases that are put to it one by one.

Only inputs go in. What comes back is a claim, checked here for form; whether it is right is decided in the judge's process, which never runs code of a candidate.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import torch

from truekernel import errors
from truekernel.errors import MachineError
from truekernel.execution import simt
from truekernel.execution.simt.cache import READY, cache_root
from truekernel.execution.simt.kit import kit, server_program
from truekernel.execution.simt.toolchain import VARIABLE
from truekernel.judge.candidates import Candidate
from truekernel.judge.channel import NONSENSE, Channel, FaultError, Shared, space
from truekernel.judge.inside import cuda_child, python_child, wire
from truekernel.judge.posing import Posed
from truekernel.judge.walls.policy import MIB, Limits, Policy, python_policy
from truekernel.judge.walls.process import Confined, Wall
from truekernel.model import Axes, Configuration, Outcome, Status, Where
from truekernel.numerics.formats import TORCH_DTYPES

OPEN_SECONDS = 120.0
"""Limit of starting the process, importing PyTorch and the candidate, in seconds of wall clock."""
CALL_SECONDS = 60.0
CALLS = 8
"""So many times, at most, is a launch plan called within one process, where its last answer is asked for."""
REGIONS = 3
KNOWN_STATUS = set(Status.__args__)  # type: ignore[attr-defined]
PLACED = "/judge"
LIMITS = Limits(memory=4096 * MIB, disk=512 * MIB, processes=64, cpu_seconds=1200)


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of one execution. `outputs`: one tensor for each output, in its dtype and shape; None where it did not end well. `hazards`: what a sanitised or plain run proved;
    `refused`: why the outputs can't be judged by their values; `modified`: inputs that were written to."""

    outcome: Outcome
    outputs: list[torch.Tensor] | None = None
    hazards: tuple[str, ...] = ()
    refused: str = ""
    modified: tuple[str, ...] = ()


class SessionEndedError(Exception):
    """Nothing more can be asked: the process has ended, hangs, or talks nonsense. `outcome`: what that means for the candidate; `fault`: kind of a `FaultError`."""

    def __init__(self, outcome: Outcome, fault: str) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome
        self.fault = fault


class UnfitError(Exception):
    """The candidate has no form that can be judged; the text says what to mend."""


@dataclass
class Session:
    """One process. A context manager; `walls`: those that are up around it. Raises MachineError when it can't be started."""

    candidate: Candidate
    posed: Posed
    call_seconds: float = CALL_SECONDS
    walls: tuple[Wall, ...] = ()
    about: dict[str, Any] = field(default_factory=dict)
    states: list[dict[str, str]] = field(default_factory=list)
    """Snapshots as the process tells them (`inside.state`): before the candidate's file is imported, after, and at the end."""
    told: list[str] = field(default_factory=list)
    """Names by which a CUDA candidate tells this compiler from a GPU's, to become another kernel there (`inside.readings`)."""

    def __enter__(self) -> Session:
        self._channel, self._shared = Channel(), Shared(REGIONS)
        self._regions = itertools.count()
        self._placed: list[tuple[str, int, memoryview]] = []
        kept = (self._channel.child_requests, self._channel.child_answers, self._shared.descriptor)
        script, policy = (_cuda_policy if self.candidate.is_cuda else _python_policy)()
        words = [sys.executable, "-I", script, *(str(descriptor) for descriptor in kept)]
        self._process = Confined(policy, words, keep=kept)
        self._channel.started()
        self.walls = self._process.walls
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()
        self._channel.close()
        self._shared.close()

    def open(self, most: int) -> None:
        """Load the candidate. `most`: bytes of the tensors of the largest case (`tensor_space`). Raises SessionEndedError, UnfitError; MachineError when
        the process fails before anything of the candidate has reached it."""
        self._shared.reserve(most)
        try:
            answer, _ = self._channel.ask({"op": "ready"}, OPEN_SECONDS)
        except FaultError as fault:
            self._process.close()
            last = self._process.output.strip().splitlines()[-1:] or [""]
            raise MachineError(f"the process for candidates does not start: {fault} {last[0]}".strip()) from None
        self._note_state(answer)
        candidate = self.candidate
        request: dict[str, Any] = {"op": "open", "text": candidate.text, "form": candidate.form}
        if candidate.is_cuda:
            request |= {"text": candidate.source, "plan": candidate.plan, "problem": self.posed.shapes()}
        else:
            request |= {"attribute": candidate.attribute}
        answer, _ = self._ask(request, OPEN_SECONDS)
        if "raised" in answer:
            raise UnfitError(f"its file can't be imported: {_text(answer['raised'])}")
        self._refused(answer)
        self._note_state(answer)
        self.about = {name: _text(answer[name]) for name in ("threads", "compiler") if name in answer}

    def _refused(self, answer: Mapping[str, Any]) -> None:
        if "refused" in answer:
            if answer.get("machine") is True:
                raise MachineError(_text(answer["refused"]))
            raise UnfitError(_text(answer["refused"]))

    def ask_state(self) -> None:
        """A last snapshot of a Python candidate's process. Raises SessionEndedError."""
        if not self.candidate.is_cuda:
            answer, _ = self._ask({"op": "state"}, self.call_seconds)
            self._note_state(answer)

    def _note_state(self, answer: Mapping[str, Any]) -> None:
        told = answer.get("state")
        if isinstance(told, dict):
            self.states.append({_text(name): _text(value) for name, value in told.items()})

    # ---------------------------------------------------------------- Python

    def make(self, axes: Axes, tensors: Mapping[str, torch.Tensor]) -> None:
        """A fresh model with the weights of a case. Raises SessionEndedError, UnfitError."""
        if self.candidate.form != "model":
            return
        names = [spec.name for spec in self.posed.problem.parameters]
        specs = self._put({name: tensors[name] for name in names}, next(self._regions))
        answer, _ = self._ask(
            {"op": "make", "init": self.posed.model_arguments(axes), "weights": specs}, self.call_seconds
        )
        if "raised" in answer:
            raise SessionEndedError(
                Outcome("crash", message=f"its constructor raises {_text(answer['raised'])}"), "raised"
            )
        if "misplaced" in answer:
            raise UnfitError(_text(answer["misplaced"]))

    def call(self, axes: Axes, tensors: Mapping[str, torch.Tensor], *, same_place: bool = False) -> Ran:
        """Call a Python candidate once. `same_place`: the inputs overwrite those of the call before, so that their addresses are the same. Raises SessionEndedError."""
        if not same_place:
            self._region = next(self._regions)
        model = self.candidate.form == "model"
        wanted = self.posed.problem.inputs if model else self.posed.problem.tensors
        given = {spec.name: tensors[spec.name] for spec in wanted}
        given = {n: t.to(torch.bool) if n in self.posed.booleans else t for n, t in given.items()}
        specs = self._put(given, self._region)
        outputs = self.posed.output_specs(axes)
        request = {"op": "call", "tensors": specs, "arguments": self._arguments(len(given)), "outputs": outputs}
        answer, deadline = self._ask(request, self.call_seconds)
        if "raised" in answer:
            return Ran(Outcome("crash", message=f"it raises {_text(answer['raised'])}"))
        claims = answer.get("outputs")
        refused = _form(claims, outputs)
        data = None
        if answer.get("data") is True and not _wrong_shapes(claims, outputs):
            data = self._read_outputs(outputs, deadline)
        elif not refused:
            self._end("garbage", NONSENSE)
        modified = self._modified()
        return Ran(Outcome("ok"), data, (), refused, tuple(n for n in modified if n not in self.posed.problem.mutates))

    def _arguments(self, count: int) -> list[Any]:
        places = iter(range(count))
        total = count + len(self.posed.literals)
        return [
            self.posed.literals[place] if place in self.posed.literals else {"tensor": next(places)}
            for place in range(total)
        ]

    # ---------------------------------------------------------------- CUDA

    def execute(
        self,
        axes: Axes,
        tensors: Mapping[str, torch.Tensor],
        configurations: Sequence[Configuration],
        cpu_seconds: float,
        again: Sequence[Configuration] = (),
    ) -> list[Ran]:
        """Run a CUDA candidate on one case in some configurations, then in those of `again`, where its plan is called `CALLS` times and the outputs are the last call's; one result alone where
        its plan fails. Raises SessionEndedError, MachineError."""
        specs = self._put(dict(tensors), next(self._regions))
        outputs = self.posed.output_specs(axes)
        words = [
            {"schedule": c.schedule, "seed": c.schedule_seed, "fill": c.fill, "checked": c.checked, "again": later}
            for later, some in ((False, configurations), (True, again))
            for c in some
        ]
        request = {
            "op": "call",
            "axes": dict(axes),
            "tensors": specs,
            "outputs": outputs,
            "configurations": words,
            "calls": CALLS if again else 1,
            "cpu_seconds": cpu_seconds,
        }
        seconds = OPEN_SECONDS + len(words) * self.call_seconds
        answer, deadline = self._ask(request, seconds)
        if "refused" in answer:
            if answer.get("machine") is True:
                raise MachineError(_text(answer["refused"]))
            return [Ran(Outcome("crash", message=f"its launch plan fails: {_text(answer['refused'])}"))]
        self._note_told(answer.get("told"))
        runs = answer.get("runs")
        if "given" in answer:
            wanted = ", ".join(f"{dtype} {shape}" for dtype, shape in outputs)
            return [
                Ran(Outcome("ok"), refused=f"its plan returns other outputs than {wanted}: {_text(answer['given'])}")
            ]
        if not isinstance(runs, list) or len(runs) != len(words):
            self._end("garbage", NONSENSE)
        found = []
        for run in runs:
            ran = _ran(run)
            if ran is None:
                self._end("garbage", NONSENSE)
            if run.get("data") is True:
                ran = Ran(ran.outcome, self._read_outputs(outputs, deadline), ran.hazards)
            found.append(ran)
        return found

    def _note_told(self, told: object) -> None:
        if isinstance(told, list):
            self.told += [name for name in map(_text, told[:9]) if name not in self.told]

    # ---------------------------------------------------------------- both

    def _put(self, tensors: Mapping[str, torch.Tensor], region: int) -> list[list[Any]]:
        """Tensors into the shared file: name, dtype, shape and offset of each."""
        contents = [_bytes(tensor) for tensor in tensors.values()]
        try:
            offsets = self._shared.place(region, contents)
        except OSError:
            self._end("garbage", "it took the memory of its inputs away")
        self._placed = list(zip(tensors, offsets, contents, strict=True))
        return [
            [name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape), offset]
            for (name, tensor), offset in zip(tensors.items(), offsets, strict=True)
        ]

    def _modified(self) -> list[str]:
        """Inputs of the last call that hold other bytes now."""
        return [name for name, offset, content in self._placed if not self._shared.still(offset, content)]

    def _ask(self, request: dict[str, Any], seconds: float) -> tuple[dict[str, Any], float]:
        try:
            return self._channel.ask(request, seconds)
        except FaultError as fault:
            self._end(fault.kind, str(fault))

    def _read_outputs(self, outputs: Sequence[tuple[str, tuple[int, ...]]], deadline: float) -> list[torch.Tensor]:
        found = []
        for dtype, shape in outputs:
            try:
                data = self._channel.read(wire.size_of(dtype, shape), deadline, self.call_seconds)
            except FaultError as fault:
                self._end(fault.kind, str(fault))
            kind = TORCH_DTYPES[dtype]
            flat = torch.frombuffer(bytearray(data), dtype=kind) if data else torch.empty(0, dtype=kind)
            found.append(flat.reshape(shape))
        return found

    def _end(self, kind: str, why: str) -> NoReturn:
        """End the process. Raises SessionEndedError always."""
        status: Status = "timeout" if kind == "timeout" else "crash"
        if kind == "ended":
            ended = self._process.wait(5.0)
            why = f"its process {ended}" if ended.how != "stopped" else "its process ended"
            last = self._process.output.strip().splitlines()[-1:]
            why += f" ({_text(last[0])})" if last else ""
        self._process.close()
        raise SessionEndedError(Outcome(status, message=why), kind)


def _python_policy() -> tuple[str, Policy]:
    here = Path(python_child.__file__).parent
    placed = {f"{PLACED}/{name}": str(here / name) for name in ("python_child.py", "state.py", "wire.py")}
    policy = python_policy(limits=LIMITS, placed=placed)
    # Memory that an allocator hands out holds huge numbers, so that reading it before writing shows.
    environment = {**policy.environment, "MALLOC_PERTURB_": "128"}
    # Where it is installed beside the packages that a candidate may import, the references would be among them.
    package = Path(errors.__file__).parent
    hidden = tuple(dict.fromkeys((str(package), str(package.resolve()))))
    return f"{PLACED}/python_child.py", Policy(policy.readable, placed, environment, LIMITS, hidden)


def _cuda_policy() -> tuple[str, Policy]:
    """For the CPU backend: its compiler, and what is built once, made here if it is not there yet."""
    compiler = simt.default_compiler()
    for options in (simt.Options(), simt.Options(checked=True)):
        kit(compiler, options)
    server_program(compiler)
    package = str(Path(errors.__file__).parent)
    cache = str(cache_root())
    policy = python_policy(limits=LIMITS, more=(package, cache, str(Path(compiler.path).parent)))
    environment = {**policy.environment, READY: cache, "XDG_CACHE_HOME": "/tmp"}
    if VARIABLE in os.environ:
        environment[VARIABLE] = os.environ[VARIABLE]
    return cuda_child.__file__, Policy(policy.readable, {}, environment, LIMITS)


def _bytes(tensor: torch.Tensor) -> memoryview:
    flat = tensor.contiguous().reshape(-1)
    data: Any = flat.view(torch.uint8).numpy() if flat.numel() else b""
    return memoryview(data)


def tensor_space(tensors: Mapping[str, torch.Tensor]) -> int:
    """Bytes of shared memory that a case takes."""
    return space([tensor.numel() * tensor.element_size() for tensor in tensors.values()])


def _text(value: object) -> str:
    return wire.safe_text(value)


def _form(claims: Any, wanted: Sequence[tuple[str, tuple[int, ...]]]) -> str:
    """Why outputs are refused by their form; "" when nothing speaks against them."""
    if not isinstance(claims, list) or not all(isinstance(claim, dict) for claim in claims):
        return "its outputs are no tensors"
    if len(claims) != len(wanted):
        return f"it returns {len(claims)} outputs, {len(wanted)} are wanted"
    for number, (claim, (dtype, shape)) in enumerate(zip(claims, wanted, strict=True)):
        name = f"output {number}" if len(wanted) > 1 else "its output"
        if claim.get("type") != "Tensor":
            return f"{name} is a {_text(claim.get('type'))}, not exactly a torch.Tensor"
        if claim.get("dtype") != dtype:
            return f"{name} is {_text(claim.get('dtype'))}, {dtype} is wanted"
        if claim.get("shape") != list(shape):
            return f"{name} has the shape {_text(claim.get('shape'))}, {list(shape)} is wanted"
        if claim.get("contiguous") is not True:
            return f"{name} has other strides than the reference's: return it contiguous"
        if claim.get("alias"):
            return f"{name} shares its memory with {_text(claim['alias'])}"
        if claim.get("device") != "cpu":
            return f"{name} lies on another device"
    return ""


def _wrong_shapes(claims: Any, wanted: Sequence[tuple[str, tuple[int, ...]]]) -> bool:
    """Whether the claims announce other data than is wanted."""
    if not isinstance(claims, list) or not all(isinstance(claim, dict) for claim in claims):
        return True
    return [(claim.get("dtype"), claim.get("shape")) for claim in claims] != [(d, list(s)) for d, s in wanted]


def _ran(run: Any) -> Ran | None:
    """One execution as the child tells it; None when it is no such thing."""
    if not isinstance(run, dict) or run.get("status") not in KNOWN_STATUS:
        return None
    if run.get("data") is True and run["status"] != "ok":
        return None
    line = run.get("line")
    where = Where(line=line if isinstance(line, int) else None)
    hazards = run.get("hazards", [])
    hazards = tuple(_text(hazard) for hazard in hazards) if isinstance(hazards, list) else ()
    seconds = run.get("seconds")
    spent = float(seconds) if isinstance(seconds, int | float) else 0.0
    message = _text(run.get("message", ""))
    if where.line and f"line {where.line}" not in message:
        message = f"{message} (line {where.line})".strip()
    return Ran(Outcome(run["status"], where, message, spent), None, hazards)
