"""A trusted process that launches a program's kernels and takes the time. No host code of the program runs here. Standard library and the driver alone.

Calls are recorded into a graph, so that the time between kernels is the device's own, and each call finds other contents at other addresses: copies of all buffers, together
three times as large as the L2 cache, take turns. The time of a call is a slope, that of 2 K calls less that of K over K, by two clocks: events on the device, and this process's own.

`python -m truekernel.judge.bench.device_timer FOLDER` reads FOLDER/job.json (see `jobs.device_job`) and then answers the requests of `serving`.
"""

from __future__ import annotations

import json
import sys
import time
from ctypes import byref, c_void_p
from pathlib import Path
from typing import Any

from truekernel.execution.cuda.driver import LARGEST_PLAIN_SHARED, Driver, DriverError, DriverMissingError, parameters
from truekernel.judge.bench.serving import POISON, copies, serve

_L2_SIZE = 38
_RELAXED = 2
_COPIED = 512 << 20


class Timer:
    """One program on one device."""

    def __init__(self, folder: Path) -> None:
        job = json.loads((folder / "job.json").read_text())
        self._folder, self._job = folder, job
        self._driver = driver = Driver()
        driver.open(0)
        module = driver.load((folder / job["cubin"]).read_bytes())
        self._functions = {kernel: driver.function(module, symbol) for kernel, symbol in job["symbols"].items()}
        for launch in job["launches"]:
            if launch["shared"] > LARGEST_PLAIN_SHARED:
                driver.allow_shared(self._functions[launch["kernel"]], launch["shared"])
        self._stream = driver.stream()
        self._events = [driver.event() for _ in range(2)]
        self._graphs: dict[tuple[int, bool], c_void_p] = {}
        self._alive: list[object] = []
        self._copies = [self._copy(number) for number in range(self._count())]

    @property
    def hello(self) -> dict[str, Any]:
        """What the parent hears first."""
        return {"copies": len(self._copies), "device": self._driver.device_name(0), "l2": self._l2()}

    def _l2(self) -> int:
        return self._driver.attribute(0, _L2_SIZE)

    def _count(self) -> int:
        each = sum(buffer["nbytes"] for buffer in self._job["buffers"])
        return copies(each, len(self._job["sets"]), self._l2(), self._driver.free_memory())

    def _copy(self, number: int) -> list[int]:
        """Addresses of a copy's buffers, its inputs filled."""
        contents = self._job["sets"][number % len(self._job["sets"])]
        addresses = []
        for at, buffer in enumerate(self._job["buffers"]):
            address = self._driver.allocate(max(buffer["nbytes"], 1))
            if str(at) in contents:
                self._driver.upload(address, Path(contents[str(at)]).read_bytes())
            addresses.append(address)
        return addresses

    def _call(self, addresses: list[int]) -> None:
        """Enqueue what one call does."""
        for buffer, address in zip(self._job["buffers"], addresses, strict=True):
            if buffer["role"] == "zeros" and buffer["nbytes"]:
                self._driver.call("cuMemsetD8Async", address, 0, buffer["nbytes"], self._stream)
        for launch in self._job["launches"]:
            values = [
                (addresses[a[1]] + a[2]).to_bytes(8, "little") if a[0] == "buffer" else bytes.fromhex(a[1])
                for a in launch["args"]
            ]
            array, alive = parameters(values)
            self._alive.append(alive)
            self._driver.launch(
                self._functions[launch["kernel"]],
                launch["grid"],
                launch["block"],
                array,
                shared=launch["shared"],
                stream=self._stream,
                cooperative=launch["cooperative"],
            )

    def _graph(self, calls: int, rotating: bool) -> c_void_p:
        if (calls, rotating) not in self._graphs:
            driver, graph, ready = self._driver, c_void_p(), c_void_p()
            driver.call("cuStreamBeginCapture_v2", self._stream, _RELAXED)
            for number in range(calls):
                self._call(self._copies[number % len(self._copies) if rotating else 0])
            driver.call("cuStreamEndCapture", self._stream, byref(graph))
            driver.call("cuGraphInstantiateWithFlags", byref(ready), graph, 0)
            self._graphs[calls, rotating] = ready
            self._launched(ready)
        return self._graphs[calls, rotating]

    def _launched(self, graph: c_void_p) -> tuple[float, float]:
        """Seconds of one launch of a graph, by the device and by this process."""
        driver = self._driver
        driver.call("cuCtxSynchronize")
        begun = time.perf_counter()
        driver.call("cuEventRecord", self._events[0], self._stream)
        driver.call("cuGraphLaunch", graph, self._stream)
        driver.call("cuEventRecord", self._events[1], self._stream)
        driver.call("cuCtxSynchronize")
        return driver.seconds(self._events[0], self._events[1]), time.perf_counter() - begun

    def elapsed(self, calls: int, rotating: bool) -> tuple[float, float]:
        """Seconds of so many calls in a row, by the device and by this process."""
        return self._launched(self._graph(calls, rotating))

    def poison(self) -> None:
        """Overwrite whatever the program must write."""
        for addresses in self._copies:
            for buffer, address in zip(self._job["buffers"], addresses, strict=True):
                if buffer["role"] == "empty" and buffer["nbytes"]:
                    self._driver.call("cuMemsetD8Async", address, POISON, buffer["nbytes"], self._stream)
        self._driver.call("cuCtxSynchronize")

    def outputs(self, copy: int) -> list[str]:
        """Files with the bytes of a copy's outputs, as they lie there now."""
        names = []
        for at in self._job["outputs"]:
            name = f"output-{copy}-{at}.bin"
            data = self._driver.download(self._copies[copy][at], self._job["buffers"][at]["nbytes"])
            (self._folder / name).write_bytes(data)
            names.append(name)
        return names

    def bandwidth(self) -> float:
        """Bytes a second, read and written together, of a copy on the device."""
        driver, pair = self._driver, [self._driver.allocate(_COPIED) for _ in range(2)]
        best = 0.0
        for _ in range(6):
            driver.call("cuEventRecord", self._events[0], self._stream)
            driver.call("cuMemcpyDtoDAsync_v2", pair[0], pair[1], _COPIED, self._stream)
            driver.call("cuEventRecord", self._events[1], self._stream)
            driver.call("cuCtxSynchronize")
            best = max(best, 2 * _COPIED / driver.seconds(self._events[0], self._events[1]))
        for address in pair:
            driver.free(address)
        return best


def main() -> None:
    """As the module's docstring says."""
    try:
        timer = Timer(Path(sys.argv[1]))
    except (DriverError, DriverMissingError) as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return
    serve(timer)


if __name__ == "__main__":
    main()
