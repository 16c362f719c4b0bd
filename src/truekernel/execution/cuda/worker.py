"""The worker process: holds a CUDA context, runs what its parent asks for, and ends when anything is wrong. Standard library only.

    python -m truekernel.execution.cuda.worker

It reads frames (`wire`) from standard input and answers each on what was standard output; whatever else is printed goes nowhere.
"""

from __future__ import annotations

import os
import traceback
from collections import deque
from ctypes import c_void_p
from itertools import islice
from pathlib import Path
from typing import Any

from truekernel.execution.cuda.device_judging import Judging
from truekernel.execution.cuda.device_memory import Memory
from truekernel.execution.cuda.driver import NO_DEVICE, OUT_OF_MEMORY, Driver, DriverError, DriverMissingError
from truekernel.execution.cuda.modules import Module
from truekernel.execution.cuda.running import BATCH, Executor, Report
from truekernel.execution.cuda.turns import turn
from truekernel.execution.cuda.wire import Channel, ClosedError, Message


class Worker:
    """Answers one request after the other."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.driver: Driver
        self.memory: Memory
        self.executor: Executor
        self.judging: Judging
        self._device = 0
        self._modules: dict[int, Module] = {}

    def serve(self) -> None:
        """Answer until the parent has gone."""
        while True:
            request, payload = self.channel.receive()
            answer = getattr(self, f"ask_{request['ask']}")(request, payload)
            if answer is not None:
                self.channel.send(answer)

    def ask_open(self, request: Message, _payload: bytearray) -> Message:
        """Find the device and make a context."""
        self._device = request["device"]
        with turn(self._device):
            self.driver = Driver()
            count = self.driver.device_count()
            if not 0 <= self._device < count:
                return {"error": "no_device", "text": f"device {self._device}: {count} are visible"}
            self.driver.open(self._device)
        return {
            "name": self.driver.device_name(self._device),
            "arch": self.driver.arch(self._device),
            "driver": self.driver.version(),
            "total": self.driver.total_memory(self._device),
            "free": self.driver.free_memory(),
            "most_shared": self.driver.most_shared(self._device),
        }

    def ask_support(self, _request: Message, payload: bytearray) -> Message:
        """Load the support kernels and prove that the device computes."""
        with turn(self._device):
            self.memory = Memory(self.driver, bytes(payload), self._device)
        self.executor = Executor(self.memory)
        self.judging = Judging(self.memory)
        return {"healthy": self.memory.probe(), "free": self.driver.free_memory()}

    def ask_contents(self, request: Message, payload: bytearray) -> Message:
        """Keep contents on the device."""
        try:
            self.memory.add_blobs(request["names"], request["sizes"], payload)
        except DriverError as error:
            if error.code != OUT_OF_MEMORY:
                raise
            return {"error": "memory", "wanted": len(payload), "free": self.driver.free_memory()}
        return {}

    def ask_drop(self, request: Message, _payload: bytearray) -> Message:
        """Free contents that no case needs any more."""
        for name in request["names"]:
            self.memory.drop_blob(name)
        return {}

    def ask_cases(self, request: Message, _payload: bytearray) -> None:
        """Define cases; their contents are there."""
        for case in request["cases"]:
            self.executor.define(case)

    def ask_forget(self, request: Message, _payload: bytearray) -> None:
        """Forget cases."""
        for key in request["keys"]:
            self.executor.forget(key)

    def ask_judge(self, request: Message, payload: bytearray) -> Message:
        """Load kernels that judge."""
        self.judging.machine.add(bytes(payload), request["symbols"])
        return {}

    def ask_library(self, request: Message, payload: bytearray) -> None:
        """Keep a cubin."""
        self._modules[request["number"]] = Module(self.driver, bytes(payload))

    def ask_release(self, request: Message, _payload: bytearray) -> None:
        """Forget a cubin."""
        module = self._modules.pop(request["number"], None)
        if module is not None:
            module.unload()

    def ask_verify(self, _request: Message, _payload: bytearray) -> Message:
        """Whether all resident contents are as they were put there, and the device computes."""
        try:
            return {"changed": self.memory.changed() or (None if self.memory.probe() else "what the device computes")}
        except DriverError as error:
            return {"changed": str(error)}

    def ask_memory(self, _request: Message, _payload: bytearray) -> Message:
        """Free device memory."""
        return {"free": self.driver.free_memory()}

    def ask_run(self, request: Message, _payload: bytearray) -> Message | None:
        """Run a library on cases, an answer for each execution, then {"spoiled": contents to send again, "fatal", "changed": as of `ask_verify`}. `series`,
        `ended`: bits; an execution all of whose series have ended is left out.

        `symbols`: of the kernels' name expressions; `fresh`: load the module anew, so that its global variables start as its source says. An overwritten red zone or
        input ends the request, unless `mend` asks to put everything back and go on. `bare`: without the sink that takes stray accesses;
        `verify`: look at all resident contents when it is done.
        """
        module = self._modules[request["library"]]
        try:
            if request["fresh"]:
                module.unload()
            functions = module.functions(request["symbols"])
        except DriverError as error:
            if error.code == OUT_OF_MEMORY:
                raise
            return {"error": "library", "text": str(error)}
        space = self.memory.space if request["bare"] else None
        try:
            if space is not None:
                space.hide()
            spoiled, fatal = self._run(request, functions)
            if fatal:
                return {"spoiled": [], "fatal": True, "changed": None}
            if space is not None:
                space.show()
            changed = self.memory.found_changed() if request["verify"] else None
        except DriverError as error:
            return {"spoiled": [], "fatal": True, "changed": None, "text": str(error)}
        return {"spoiled": spoiled, "fatal": False, "changed": changed}

    def _run(self, request: Message, functions: dict[str, c_void_p]) -> tuple[list[str], bool]:
        """Contents to send again, and whether the process is lost."""
        waiting = deque(enumerate(request["executions"]))
        ended, most = request["ended"], BATCH
        while waiting:
            some, ended = self._begin(waiting, request, functions, ended, most)
            if request["verify"] and not waiting:
                self.memory.look()
            reports = self.executor.finish()
            waiting.extendleft(reversed(some[len(reports) :]))
            for (number, execution), report in zip(some, reports, strict=False):
                self._answer(number, execution, report)
                if report.status not in ("ok", "fault", "timeout"):
                    ended |= execution["series"]
            self.channel.flush()
            if not reports:
                continue
            last, key = reports[-1], some[len(reports) - 1][1]["key"]
            if last.fatal:
                return [], True
            if last.status == "memory" or (last.spoils and not request["mend"]):
                return [], False
            if last.spoils:
                most = 1  # the next ones may well do the same
                spoiled = self.executor.repair(key)
                if spoiled:
                    return spoiled, False
        return [], False

    def _begin(
        self,
        waiting: deque[tuple[int, Message]],
        request: Message,
        functions: dict[str, c_void_p],
        ended: int,
        most: int,
    ) -> tuple[list[tuple[int, Message]], int]:
        """Launch the next executions, as many as may follow each other; what was begun, and the series that have ended."""
        begun: list[tuple[int, Message]] = []
        pairs = [(atol, rtol) for atol, rtol in request["tolerances"]]
        soon = list(islice(waiting, most))
        self.executor.lay_out([execution["key"] for _, execution in soon])
        if request["verify"]:
            self.memory.prepare_look()
        if any(execution["judge"] for _, execution in soon):
            self.judging.prepare(pairs, request["rhos"])
        while waiting and len(begun) < most:
            number, execution = waiting[0]
            if execution["series"] and not execution["series"] & ~ended:
                waiting.popleft()
                continue
            if begun and not self.executor.bound(execution["key"]):
                break
            waiting.popleft()
            fill = execution["fill"]
            judge = None
            if execution["judge"]:

                def judge(case: Any, binding: Any, fill: str = fill) -> Any:
                    return self.judging.begin(case, binding, fill, pairs, request["rhos"])

            report = self.executor.begin(execution["key"], functions, fill, execution["seconds"], judge)
            begun.append((number, execution))
            if report.status == "refused":
                ended |= execution["series"]
            if report.status not in ("ok", "refused") or execution["outputs"]:
                break  # outputs are read before anything else is executed
        return begun, ended

    def _answer(self, number: int, execution: Message, report: Report) -> None:
        wanted = execution["outputs"] and report.status == "ok"
        outputs = self.executor.outputs(execution["key"]) if wanted else []
        message: dict[str, Any] = {
            "execution": number,
            "status": report.status,
            "seconds": report.seconds,
            "digest": report.digest,
            "hazards": [list(h) for h in report.hazards],
            "code": report.code,
            "text": report.text,
            "launch": report.launch,
            "outputs": [len(o) for o in outputs],
            "values": report.values if report.status == "ok" else None,
        }
        if report.status == "memory":
            message["free"] = self.driver.free_memory()
        self.channel.hold(message, outputs)


def main() -> None:
    """Serve the parent; printing of kernels and libraries goes nowhere."""
    channel = Channel(os.dup(0), os.dup(1))
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)  # assertions of kernels
    try:
        Worker(channel).serve()
    except ClosedError:
        pass
    except DriverMissingError as error:
        channel.send({"error": "no_driver", "text": str(error)})
    except DriverError as error:
        kind = "no_device" if error.code == NO_DEVICE else "driver"
        channel.send({"error": kind, "code": error.code, "text": str(error)})
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        channel.send({"error": "driver", "code": 0, "text": text})
    os._exit(0)  # the driver's own clean-up can hang behind a kernel that never ends


if __name__ == "__main__":
    main()
