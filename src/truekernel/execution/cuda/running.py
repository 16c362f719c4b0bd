"""One execution in a worker: prepare memory, launch, wait until a deadline, look at what was left. Standard library only."""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Mapping
from ctypes import c_void_p
from dataclasses import dataclass, field
from typing import Any

from truekernel.execution.cuda.bindings import Binding, BoundLaunch, bind
from truekernel.execution.cuda.device_memory import Memory
from truekernel.execution.cuda.driver import OUT_OF_MEMORY, DriverError

REFUSED = frozenset({1, 98, 200, 400, 701, 720, 801})
"""Codes by which a launch is refused and the context lives on: invalid value, invalid device function, invalid image, invalid handle, out of
resources, too large for a cooperative launch, not supported."""
INDEX = 0x9E3779B97F4A7C15
"""As in `numerics.digest`, which is not imported here since it needs torch."""
SPIN_SECONDS = 0.002
_NAP = 0.0002


@dataclass(slots=True)
class Report:
    """What came of an execution.

    `status`: ok, refused, fault, timeout, no_kernel or memory. `hazards`: ("before" | "behind" | "input", buffer, byte offset from the buffer's start).
    `fatal`: nothing more can be run in this process.
    """

    status: str
    seconds: float = 0.0
    digest: str = ""
    hazards: list[tuple[str, int, int]] = field(default_factory=list)
    code: int = 0
    text: str = ""
    launch: int = -1

    @property
    def fatal(self) -> bool:
        """Whether the process must end."""
        return self.status in ("fault", "timeout")


class Executor:
    """Runs launch plans on cases that are defined once."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.driver = memory.driver
        self.cases: dict[str, dict[str, Any]] = {}
        self._bindings: dict[str, Binding] = {}
        self._streams: dict[int, c_void_p | None] = {0: None}
        self._start, self._end, self._done = (self.driver.event() for _ in range(3))
        self._host, self._host_words = 0, 0

    def define(self, case: dict[str, Any]) -> None:
        """Keep a case; what it had before is forgotten."""
        self.forget(case["key"])
        self.cases[case["key"]] = case

    def forget(self, key: str) -> None:
        """Forget a case."""
        self.cases.pop(key, None)
        binding = self._bindings.pop(key, None)
        if binding is not None:
            binding.release(self.memory)

    def execute(self, key: str, functions: Mapping[str, c_void_p], fill: str, limit: float) -> Report:
        """Run the case's launches within `limit` seconds of wall time."""
        missing = next((x["kernel"] for x in self.cases[key]["launches"] if x["kernel"] not in functions), None)
        if missing is not None:
            return Report("no_kernel", text=missing)
        try:
            binding = self.binding(key)
        except DriverError as error:
            if error.code != OUT_OF_MEMORY:
                raise
            return Report("memory", code=error.code, text=error.text)
        try:
            return self._execute(binding, functions, fill, limit)
        except DriverError as error:
            return Report("fault", code=error.code, text=f"{error.name}: {error.text}")

    def _execute(self, binding: Binding, functions: Mapping[str, c_void_p], fill: str, limit: float) -> Report:
        self._prepare(binding, fill)
        self._record(self._start)
        report = Report("ok")
        deadline = time.monotonic() + limit
        for number, launch in enumerate(binding.launches):
            try:
                self._launch(functions[launch.kernel], launch)
            except DriverError as error:
                report = Report("refused" if error.code in REFUSED else "fault", code=error.code, launch=number)
                report.text = f"{error.name}: {error.text}"
                break
        if report.status == "fault":
            return report
        self._record(self._end)
        self._inspect(binding)
        self._record(self._done)
        if not self._wait(deadline):
            return Report("timeout", seconds=limit)
        report.seconds = self.driver.seconds(self._start, self._end)
        self._read(binding, report)
        return report

    def outputs(self, key: str) -> list[bytearray]:
        """Contents of the case's outputs after its last execution."""
        binding, case = self._bindings[key], self.cases[key]
        return [self.driver.download(binding.addresses[n], case["buffers"][n]["nbytes"]) for n in case["outputs"]]

    def repair(self, key: str) -> list[str]:
        """Mend the red zones around a case's buffers; returns the contents that are no longer what they were."""
        self.memory.fill(self._bindings[key].checks)
        spoiled: list[str] = []
        while (name := self.memory.changed()) is not None:
            spoiled.append(name)
            self.memory.drop_blob(name)
        for other in list(self._bindings) if spoiled else []:
            self._bindings.pop(other).release(self.memory)
        return spoiled

    def binding(self, key: str) -> Binding:
        """Where the case lies; laid out anew when the arena has moved."""
        binding = self._bindings.get(key)
        if binding is not None and binding.generation == self.memory.generation:
            return binding
        if binding is not None:
            del self._bindings[key]
            binding.release(self.memory)
        binding = bind(self.cases[key], self.memory)
        self._bindings[key] = binding
        return binding

    def _prepare(self, binding: Binding, fill: str) -> None:
        self.memory.fill(binding.fills[fill])
        for copy in binding.copies[fill]:
            at = 0
            while at < copy.nbytes:
                part = min(copy.source_bytes, copy.nbytes - at)
                self.driver.call("cuMemcpyDtoDAsync_v2", copy.target + at, copy.source, part, None)
                at += part

    def _launch(self, function: c_void_p, launch: BoundLaunch) -> None:
        if launch.shared:
            self.driver.allow_shared(function, launch.shared)
        if launch.stream not in self._streams:
            self._streams[launch.stream] = self.driver.stream()
        self.driver.launch(
            function,
            launch.grid,
            launch.block,
            launch.parameters,
            shared=launch.shared,
            stream=self._streams[launch.stream],
            cooperative=launch.cooperative,
        )

    def _record(self, event: c_void_p) -> None:
        self.driver.call("cuEventRecord", event, None)

    def _inspect(self, binding: Binding) -> None:
        """Check red zones, hash inputs and outputs, and have the results copied to the host."""
        self.memory.check(binding.checks, binding.results)
        self.memory.hash(binding.hashed, binding.results + 8 * len(binding.checks.ranges))
        if binding.result_words > self._host_words:
            self._host_words = binding.result_words
            self._host = self.driver.host_memory(8 * self._host_words)
        if binding.result_words:
            self.driver.call("cuMemcpyDtoHAsync_v2", self._host, binding.results, 8 * binding.result_words, None)

    def _wait(self, deadline: float) -> bool:
        spinning = time.monotonic() + SPIN_SECONDS
        while not self.driver.reached(self._done):
            now = time.monotonic()
            if now > deadline:
                return False
            if now > spinning:
                time.sleep(_NAP)
        return True

    def _read(self, binding: Binding, report: Report) -> None:
        count = binding.result_words
        words = struct.unpack(f"<{count}Q", ctypes.string_at(self._host, 8 * count)) if count else ()
        zones, hashes = words[: len(binding.checks.ranges)], words[len(binding.checks.ranges) :]
        for (buffer, behind), range_, wrong in zip(binding.owners, binding.checks.ranges, zones, strict=True):
            if wrong < range_.nbytes:
                start = range_.address - binding.addresses[buffer]
                report.hazards.append(("behind" if behind else "before", buffer, start + wrong))
        kept, made = hashes[: len(binding.watched)], hashes[len(binding.watched) :]
        report.hazards += [
            ("input", n, 0) for (n, digest), found in zip(binding.watched, kept, strict=True) if found != digest
        ]
        length = sum(r.nbytes for r in binding.hashed.ranges[len(binding.watched) :])
        report.digest = f"{(sum(made) + length * INDEX) & (2**64 - 1):016x}"
