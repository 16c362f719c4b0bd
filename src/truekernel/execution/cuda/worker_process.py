"""A worker process as its parent sees it: what it holds, what it answers, when it is overdue."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from truekernel.errors import GpuMemoryError, GpuMissingError, MachineError
from truekernel.execution.cuda.compilers import channel_of, end_process, start_module
from truekernel.execution.cuda.devices import missing
from truekernel.execution.cuda.library import Library
from truekernel.execution.cuda.running import BATCH
from truekernel.execution.cuda.wire import ClosedError, Data, Message, OverdueError
from truekernel.execution.cuda.wire_cases import CaseMessage

ENVIRONMENT = {"CUDA_DEVICE_MAX_CONNECTIONS": "1", "CUDA_MODULE_LOADING": "EAGER"}
"""One queue for work instead of eight: contexts come in a third of the time. Kernels are loaded with their module: loading one later waits for whatever runs."""
CONTENTS_AT_ONCE = 256 << 20
"""Bytes of contents in one message."""
UNUSED_UNITS = 6
"""Units that a worker keeps though no library in them is in use."""
START_SECONDS = 60.0
ANSWER_SECONDS = 120.0
GRACE_SECONDS = 5.0
"""Beyond an execution's own limit, after which a worker that says nothing is killed."""


class WorkerDiedError(Exception):
    """The worker has ended, or said something that it never says; the text is the reason."""


@dataclass(slots=True)
class Answer:
    """What a worker said of one execution (`running.Report`), with the outputs it sent."""

    status: str
    seconds: float = 0.0
    digest: str = ""
    hazards: list[tuple[str, int, int]] = field(default_factory=list)
    code: int = 0
    text: str = ""
    launch: int = -1
    free: int = 0
    outputs: list[memoryview] = field(default_factory=list)
    values: list[float] | None = None
    """Statistics in the order of their names."""

    @property
    def suspicious(self) -> bool:
        """Whether the worker's memory or context may have suffered."""
        return bool(self.hazards) or self.status in ("fault", "timeout")


@dataclass(slots=True)
class _Unit:
    """Machine code in the worker, and the libraries in it that are in use, by identity."""

    number: int
    users: dict[int, Library] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a request to run ended: contents to send again, whether the worker is lost, and whether resident contents have changed unnoticed."""

    spoiled: tuple[str, ...]
    fatal: bool
    changed: bool


class WorkerProcess:
    """One worker with a context on `device`. `name`, `arch`, `total`, `free_at_start`: of its GPU (bytes). `support`: the support kernels, where they are known
    already: all that takes long is then done ahead."""

    def __init__(self, device: int, support: bytes | None = None) -> None:
        self.device = device
        self._process = start_module("truekernel.execution.cuda.worker", environment=os.environ | ENVIRONMENT)
        self._channel = channel_of(self._process)
        self.contents: set[str] = set()
        self.cases: set[str] = set()
        self.judges: set[str] = set()
        """Judging kernels that it has loaded."""
        self._units: dict[str, _Unit] = {}
        self.served = 0
        """Requests to run that it has served."""
        self.name, self.arch, self.total, self.free_at_start = "", "", 0, 0
        self._numbers = 0
        self._opened = False
        self._supported = support is not None
        self._channel.send({"ask": "open", "device": device})
        if support is not None:
            self._channel.send({"ask": "support"}, [support])

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid

    def open(self, support: Callable[[str], bytes]) -> None:
        """Wait for its context, load the support kernels that `support(arch)` gives, and have the GPU prove that it computes.

        Raises GpuMissingError when there is no GPU or a wrong result, MachineError when the process does not come up.
        """
        if self._opened:
            return
        try:
            hello, _ = self._channel.receive(START_SECONDS)
            if "error" in hello:
                raise missing(str(hello["error"]), str(hello.get("text", "")))
            self.name, self.arch = str(hello["name"]), str(hello["arch"])
            self.total, self.free_at_start = int(hello["total"]), int(hello["free"])
            if not self._supported:
                self._channel.send({"ask": "support"}, [support(self.arch)])
            health, _ = self._channel.receive(START_SECONDS)
        except OverdueError:
            self.end()
            raise MachineError(f"a GPU worker did not start within {START_SECONDS:g} s: check nvidia-smi") from None
        except ClosedError:
            self.end()
            raise MachineError("a GPU worker died while it started: check nvidia-smi and free memory") from None
        except BaseException:
            self.end()
            raise
        if health.get("healthy") is not True:
            self.end()
            raise GpuMissingError(
                f"{self.name} does not compute what it should ({health.get('text', 'a probe kernel gave wrong numbers')}): restart the machine"
            )
        self._opened = True

    def ask(self, message: Message, payload: Iterable[Data] = ()) -> Message:
        """Send a request that has one answer. Raises WorkerDiedError."""
        try:
            self._channel.send(message, list(payload))
            answer, _ = self._channel.receive(ANSWER_SECONDS)
        except (ClosedError, OverdueError) as error:
            raise WorkerDiedError(str(error) or "no answer") from None
        if answer.get("error") in ("driver", "no_driver"):
            raise WorkerDiedError(str(answer.get("text")))
        return answer

    def tell(self, message: Message, payload: Iterable[Data] = ()) -> None:
        """Send a request that has no answer. Raises WorkerDiedError."""
        try:
            self._channel.send(message, list(payload))
        except ClosedError as error:
            raise WorkerDiedError(str(error)) from None

    def hold(self, cases: Iterable[CaseMessage], title: str) -> None:
        """Define cases that the worker lacks, and send contents that it lacks. Raises GpuMemoryError with `title`, WorkerDiedError."""
        wanted = list(cases)
        missing: dict[str, Data] = {}
        size = 0
        for case in wanted:
            for name, data in case.contents.items():
                if name not in self.contents and name not in missing:
                    missing[name] = data
                    size += len(data)
                    if size >= CONTENTS_AT_ONCE:
                        self._send_contents(missing, title)
                        missing, size = {}, 0
        self._send_contents(missing, title)
        messages = {case.message["key"]: case.message for case in wanted if case.message["key"] not in self.cases}
        if messages:
            self.tell({"ask": "cases", "cases": list(messages.values())})
            self.cases.update(messages)

    def _send_contents(self, contents: Mapping[str, Data], title: str) -> None:
        if not contents:
            return
        request = {"ask": "contents", "names": list(contents), "sizes": [len(data) for data in contents.values()]}
        answer = self.ask(request, contents.values())
        if answer.get("error") == "memory":
            raise too_large(title, self.name, int(answer["wanted"]), int(answer["free"]))
        self.contents.update(contents)

    def drop(self, keys: Iterable[str], contents: Iterable[str]) -> None:
        """Forget cases, and free contents, that it holds."""
        held = [key for key in keys if key in self.cases]
        if held:
            self.cases.difference_update(held)
            self.tell({"ask": "forget", "keys": held})
        unused = [name for name in contents if name in self.contents]
        if unused:
            self.contents.difference_update(unused)
            self.ask({"ask": "drop", "names": unused})

    def empty(self) -> None:
        """Forget all cases and libraries, and free all contents."""
        self.drop(list(self.cases), list(self.contents))
        for name in list(self._units):
            self._release(name)

    def load(self, library: Library) -> int:
        """Number of the library's unit in the worker, which is sent when it is not there."""
        unit = self._units.get(library.unit)
        if unit is None:
            self._numbers += 1
            self._units[library.unit] = unit = _Unit(self._numbers)
            self.tell({"ask": "library", "number": unit.number}, [library.cubin])
        unit.users[id(library)] = library
        return unit.number

    def load_judges(self, library: Library) -> None:
        """Have it load judging kernels."""
        self.ask({"ask": "judge", "symbols": dict(library.symbols)}, [library.cubin])
        self.judges.update(library.kernels)

    def unload(self, library: Library) -> None:
        """Forget a library. A unit that none uses any more stays for a while: others of its libraries may come yet."""
        unit = self._units.get(library.unit)
        if unit is None or unit.users.pop(id(library), None) is None or unit.users:
            return
        self._units[library.unit] = self._units.pop(library.unit)
        unused = [name for name, other in self._units.items() if not other.users]
        for name in unused[:-UNUSED_UNITS]:
            self._release(name)

    def _release(self, name: str) -> None:
        self.tell({"ask": "release", "number": self._units.pop(name).number})

    def run(self, request: Message, take: Callable[[int, Answer], None]) -> RunEnd:
        """Run `request`; `take(number, answer)` for each execution. Raises WorkerDiedError when the worker ends without a word."""
        self.served += 1
        limits = [execution["seconds"] for execution in request["executions"]]
        at = 0
        try:
            self._channel.send(request)
            while True:
                message, payload = self._channel.receive(sum(limits[at : at + BATCH]) + GRACE_SECONDS)
                if "execution" not in message:
                    break
                number = int(message["execution"])
                if not at <= number < len(limits):
                    raise WorkerDiedError(f"an answer for execution {number} of {len(limits)}")
                take(number, _answer(message, payload))
                at = number + 1
        except OverdueError:
            if at < len(limits):
                take(at, Answer("timeout", seconds=limits[at], text="the worker did not answer and was killed"))
            return RunEnd((), True, False)
        except (ClosedError, KeyError, TypeError, ValueError) as error:
            raise WorkerDiedError(str(error)) from None
        if message.get("error") == "library":
            raise LibraryError(str(message.get("text")))
        if "fatal" not in message:
            raise WorkerDiedError(str(message.get("text", "no end of the request")))
        return RunEnd(tuple(map(str, message["spoiled"])), bool(message["fatal"]), message["changed"] is not None)

    def kill(self) -> None:
        """Kill it, and don't wait."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def end(self) -> None:
        """Kill it and wait until the system has taken the process back."""
        end_process(self._process)


class LibraryError(Exception):
    """The driver does not load a library."""


def too_large(title: str, gpu: str, wanted: int, free: int) -> GpuMemoryError:
    """The error for a case that needs `wanted` bytes where `free` are there."""
    share = max(1, int(90 * free / max(wanted, 1)))
    return GpuMemoryError(
        f"case '{title}' needs {wanted / 2**30:.1f} GiB on the {gpu or 'GPU'}, {free / 2**30:.1f} GiB are free: "
        f"shrink its batch or spatial axes to {min(share, 90)} % of its elements or fewer, or use a larger GPU"
    )


def _answer(message: Mapping[str, Any], payload: bytearray) -> Answer:
    """An answer, checked: its process ran foreign code. Raises KeyError, TypeError or ValueError for what is none."""
    outputs, at = [], 0
    for size in message["outputs"]:
        outputs.append(memoryview(payload)[at : at + int(size)])
        at += int(size)
    if at != len(payload):
        raise ValueError(f"{len(payload)} bytes of outputs, {at} announced")
    return Answer(
        status=str(message["status"]),
        seconds=float(message["seconds"]),
        digest=str(message["digest"]),
        hazards=[(str(kind), int(buffer), int(offset)) for kind, buffer, offset in message["hazards"]],
        code=int(message["code"]),
        text=str(message["text"]),
        launch=int(message["launch"]),
        free=int(message.get("free", 0)),
        values=None if message["values"] is None else [float(value) for value in message["values"]],
        outputs=outputs,
    )
