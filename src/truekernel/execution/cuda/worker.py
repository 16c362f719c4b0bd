"""The worker process: holds a CUDA context, runs what its parent asks for, and ends when anything is wrong. Standard library only.

    python -m truekernel.execution.cuda.worker

It reads frames (`wire`) from standard input and answers each on what was standard output; whatever else is printed goes nowhere.
"""

from __future__ import annotations

import os
import traceback
from ctypes import c_void_p
from pathlib import Path
from typing import Any

from truekernel.execution.cuda.device_judging import Judging
from truekernel.execution.cuda.device_memory import Memory
from truekernel.execution.cuda.driver import NO_DEVICE, OUT_OF_MEMORY, Driver, DriverError, DriverMissingError
from truekernel.execution.cuda.running import Executor, Report
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
        self._libraries: dict[int, tuple[dict[str, str], bytes]] = {}

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
        self.memory = Memory(self.driver, bytes(payload))
        self.executor = Executor(self.memory)
        self.judging = Judging(self.memory)
        return {"healthy": self.memory.probe(), "free": self.driver.free_memory()}

    def ask_content(self, request: Message, payload: bytearray) -> Message:
        """Keep a content on the device."""
        try:
            self.memory.add_blob(request["name"], payload)
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

    def ask_case(self, request: Message, _payload: bytearray) -> Message:
        """Define a case; its contents are there."""
        self.executor.define(request)
        return {}

    def ask_forget(self, request: Message, _payload: bytearray) -> Message:
        """Forget a case."""
        self.executor.forget(request["key"])
        return {}

    def ask_judge(self, request: Message, payload: bytearray) -> Message:
        """Load kernels that judge."""
        self.judging.machine.add(bytes(payload), request["symbols"])
        return {}

    def ask_library(self, request: Message, payload: bytearray) -> Message:
        """Keep a cubin; `symbols`: symbol of each kernel's name expression."""
        self._libraries[request["number"]] = request["symbols"], bytes(payload)
        return {}

    def ask_release(self, request: Message, _payload: bytearray) -> Message:
        """Forget a cubin."""
        self._libraries.pop(request["number"], None)
        return {}

    def ask_verify(self, _request: Message, _payload: bytearray) -> Message:
        """Whether all resident contents are as they were put there."""
        try:
            return {"changed": self.memory.changed()}
        except DriverError as error:
            return {"changed": str(error)}

    def ask_memory(self, _request: Message, _payload: bytearray) -> Message:
        """Free device memory."""
        return {"free": self.driver.free_memory()}

    def ask_run(self, request: Message, _payload: bytearray) -> Message | None:
        """Run a library on cases, an answer for each execution, then {"spoiled": contents to send again, "fatal"}. `series`,
        `ended`: bits; an execution all of whose series have ended is left out.

        The module is loaded for this request only, so that a library's global variables start as its source says. An overwritten red zone or
        input ends the request, unless `mend` asks to put everything back and go on.
        """
        symbols, cubin = self._libraries[request["library"]]
        try:
            module = self.driver.load(cubin)
            functions = self._functions(module, symbols)
        except DriverError as error:
            if error.code == OUT_OF_MEMORY:
                raise
            return {"error": "library", "text": str(error)}
        spoiled: list[str] = []
        ended = request["ended"]
        for number, execution in enumerate(request["executions"]):
            if execution["series"] and not execution["series"] & ~ended:
                continue
            report = self.executor.execute(execution["key"], functions, execution["fill"], execution["seconds"])
            self._answer(number, execution, report, request)
            if report.fatal:
                return {"spoiled": [], "fatal": True}
            if report.status != "ok":
                ended |= execution["series"]
            if report.hazards:
                if not request["mend"]:
                    break
                spoiled = self.executor.repair(execution["key"])
            if spoiled or report.status == "memory":
                break
        try:
            self.driver.unload(module)
        except DriverError as error:
            return {"spoiled": spoiled, "fatal": True, "text": str(error)}
        return {"spoiled": spoiled, "fatal": False}

    def _functions(self, module: c_void_p, symbols: dict[str, str]) -> dict[str, c_void_p]:
        found = {}
        for kernel, symbol in symbols.items():
            try:
                found[kernel] = self.driver.function(module, symbol)
            except DriverError:
                continue  # the execution that needs it says so
        return found

    def _answer(self, number: int, execution: Message, report: Report, request: Message) -> None:
        key, good = execution["key"], report.status == "ok"
        outputs = self.executor.outputs(key) if execution["outputs"] and good else []
        values = None
        if execution["judge"] and good:
            case, binding = self.executor.cases[key], self.executor.binding(key)
            pairs = [(atol, rtol) for atol, rtol in request["tolerances"]]
            values = self.judging.values(case, binding, execution["fill"], pairs, request["rhos"])
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
            "values": values,
        }
        if report.status == "memory":
            message["free"] = self.driver.free_memory()
        self.channel.send(message, outputs)


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
