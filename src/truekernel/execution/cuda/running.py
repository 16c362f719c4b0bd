"""Executions in a worker: prepare memory, launch, look at what was left; many in a row, then one wait for all. Standard library only.

Each process on a GPU that waits for an answer costs a change of contexts, several times what a small kernel takes. So executions follow each other on
the device without the host: a word that arrives behind each one's results tells how far they came when a fault or a deadline ends them.
"""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_void_p
from dataclasses import dataclass, field
from typing import Any

from truekernel.execution.cuda.bindings import ARRIVED, Binding, BoundLaunch, arena_bytes, bind
from truekernel.execution.cuda.device_memory import Memory
from truekernel.execution.cuda.driver import OUT_OF_MEMORY, DriverError

REFUSED = frozenset({1, 98, 200, 400, 701, 720, 801})
"""Codes by which a launch is refused and the context lives on: invalid value, invalid device function, invalid image, invalid handle, out of
resources, too large for a cooperative launch, not supported."""
INDEX = 0x9E3779B97F4A7C15
"""As in `numerics.digest`, which is not imported here since it needs torch."""
BATCH = 24
"""Most executions in a row; a stream takes about a thousand commands before it makes the host wait."""
SPIN_SECONDS = 0.0002
_NAP = 0.00005
_SLOT_WORDS = 1024
"""Of page-locked memory for each execution's results: more than most need, since getting more waits for whatever runs."""

Decode = Callable[[Sequence[int]], list[float | None]]
Judge = Callable[[Mapping[str, Any], Binding], tuple[int, int, Decode]]
"""Launches the judging of a case's outputs: address and number of the words that hold the result, and what they mean."""


@dataclass(slots=True)
class Report:
    """What came of an execution.

    `status`: ok, refused, fault, stray, timeout, no_kernel or memory. `hazards`: ("before" | "behind" | "input", buffer, byte offset from the buffer's start).
    `values`: its statistics where it was judged. `fatal`: nothing more can be run in this process.
    """

    status: str
    seconds: float = 0.0
    digest: str = ""
    hazards: list[tuple[str, int, int]] = field(default_factory=list)
    code: int = 0
    text: str = ""
    launch: int = -1
    values: list[float | None] | None = None

    @property
    def fatal(self) -> bool:
        """Whether the process must end."""
        return self.status in ("fault", "timeout")

    @property
    def spoils(self) -> bool:
        """Whether it wrote where it must not."""
        return self.status == "stray" or bool(self.hazards)


@dataclass(slots=True)
class _Slot:
    """Page-locked host memory for one execution's results, and events around its launches."""

    start: c_void_p
    end: c_void_p
    address: int = 0
    words: int = 0


@dataclass(slots=True)
class _Begun:
    """An execution that has been launched; `sent`: all of it. `words`: of its judge's result, behind which the binding's own follow; `report`: what is known of it already."""

    binding: Binding | None
    slot: _Slot
    limit: float
    report: Report
    words: int = 0
    decode: Decode | None = None
    sent: bool = False


class Executor:
    """Runs launch plans on cases that are defined once: `begin` some, then `finish` tells what came of them."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.driver = memory.driver
        self.cases: dict[str, dict[str, Any]] = {}
        self._bindings: dict[str, Binding] = {}
        self._streams: dict[int, c_void_p | None] = {0: None}
        self._slots: list[_Slot] = []
        self._begun: list[_Begun] = []
        self._lost: DriverError | None = None
        self._done = self.driver.event()

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

    def lay_out(self, keys: Sequence[str]) -> None:
        """Lay out cases that will follow each other: once something runs, that would wait for it. What does not fit is left to `begin`."""
        largest = max((arena_bytes(self.cases[key]) for key in keys), default=0)
        try:
            self.memory.arena(largest)
            for number, key in enumerate(keys):
                self.binding(key)
                self._slot(number)
        except DriverError as error:
            if error.code != OUT_OF_MEMORY:
                raise

    def bound(self, key: str) -> bool:
        """Whether the case is laid out."""
        binding = self._bindings.get(key)
        return binding is not None and binding.generation == self.memory.generation

    def begin(
        self, key: str, functions: Mapping[str, c_void_p], fill: str, limit: float, judge: Judge | None = None
    ) -> Report:
        """Launch the case, which may take `limit` seconds of wall time; the report says only what is known before it has run.

        A report that is neither ok nor refused is final, and begins nothing.
        """
        missing = next((x["kernel"] for x in self.cases[key]["launches"] if x["kernel"] not in functions), None)
        if missing is not None:
            return self._known(Report("no_kernel", text=missing))
        try:
            binding = self.binding(key)
        except DriverError as error:
            if error.code != OUT_OF_MEMORY:
                return self._fails(error)
            return self._known(Report("memory", code=error.code, text=error.text))
        begun = _Begun(binding, self._slot(len(self._begun)), limit, Report("ok"))
        self._begun.append(begun)
        try:
            self._launch_all(begun, functions, fill)
            self._inspect(begun, self.cases[key], judge)
        except DriverError as error:
            self._lost = error
            return Report("fault", code=error.code, text=f"{error.name}: {error.text}")
        return begun.report

    def _known(self, report: Report) -> Report:
        self._begun.append(_Begun(None, self._slot(len(self._begun)), 0.0, report))
        return report

    def _fails(self, error: DriverError) -> Report:
        self._lost = error
        return self._known(Report("fault", code=error.code, text=f"{error.name}: {error.text}"))

    def finish(self) -> list[Report]:
        """Reports of what was begun, in order; the first that is fatal, or spoils memory, is the last. What was begun after it does not count."""
        begun, self._begun = self._begun, []
        arrived, end = self._wait(begun)
        reports: list[Report] = []
        for one in begun[:arrived]:
            self._read(one, timed=end is None)
            reports.append(one.report)
            if one.report.spoils:
                return reports
        if end is not None and arrived < len(begun):
            reports.append(end)
        return reports

    def outputs(self, key: str) -> list[bytearray]:
        """Contents of the case's outputs after the last execution, which was of this case."""
        binding, case = self._bindings[key], self.cases[key]
        return [self.driver.download(binding.addresses[n], case["buffers"][n]["nbytes"]) for n in case["outputs"]]

    def repair(self, key: str) -> list[str]:
        """Put back what no execution may change; returns the contents that are no longer what they were, and are gone."""
        spoiled = self.memory.mend(self._bindings[key].checks)
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

    def _slot(self, number: int) -> _Slot:
        if not self._slots:
            address = self.driver.host_memory(8 * _SLOT_WORDS * BATCH)
            for at in range(address, address + 8 * _SLOT_WORDS * BATCH, 8 * _SLOT_WORDS):
                self._slots.append(_Slot(self.driver.event(), self.driver.event(), at, _SLOT_WORDS))
        return self._slots[number]

    def _launch_all(self, begun: _Begun, functions: Mapping[str, c_void_p], fill: str) -> None:
        binding = begun.binding
        assert binding is not None
        self._prepare(binding, fill)
        self._record(begun.slot.start)
        for number, launch in enumerate(binding.launches):
            try:
                self._launch(functions[launch.kernel], launch)
            except DriverError as error:
                if error.code not in REFUSED:
                    raise
                begun.report = Report("refused", code=error.code, launch=number, text=f"{error.name}: {error.text}")
                break
        self._record(begun.slot.end)

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

    def _inspect(self, begun: _Begun, case: Mapping[str, Any], judge: Judge | None) -> None:
        """Judge, check red zones, hash inputs and outputs, and have the results copied to the host; the word behind them comes last."""
        binding, slot = begun.binding, begun.slot
        assert binding is not None
        self.memory.check(binding.checks, binding.results)
        self.memory.hash(binding.hashed, binding.results + 8 * len(binding.checks.ranges))
        state = 0
        if judge is not None and begun.report.status == "ok":
            state, begun.words, begun.decode = judge(case, binding)
        own = binding.result_words + 1
        if slot.words < begun.words + own:
            slot.words = 2 * (begun.words + own)
            slot.address = self.driver.host_memory(8 * slot.words)
        last = slot.address + 8 * (begun.words + binding.result_words)
        ctypes.c_uint64.from_address(last).value = 0
        if begun.words:
            self.driver.call("cuMemcpyDtoHAsync_v2", slot.address, state, 8 * begun.words, None)
        self.driver.call("cuMemcpyDtoHAsync_v2", slot.address + 8 * begun.words, binding.results, 8 * own, None)
        begun.sent = True

    def _wait(self, begun: Sequence[_Begun]) -> tuple[int, Report | None]:
        """How many executions came to their end, and what stopped the next one, None when nothing did."""
        arrived = 0
        error, self._lost = self._lost, None
        now = time.monotonic()
        deadline, spinning = now + (begun[0].limit if begun else 0.0), now + SPIN_SECONDS
        if error is None:
            try:
                self._record(self._done)
            except DriverError as failed:
                error = failed
        while arrived < len(begun):
            ended = error is not None
            try:
                ended = self.driver.reached(self._done) if error is None else self._settled()
            except DriverError as failed:
                error, ended = error or failed, True
            now = time.monotonic()
            while arrived < len(begun) and self._has_arrived(begun[arrived]):
                arrived += 1
                if arrived < len(begun):
                    deadline = now + begun[arrived].limit
            if ended:
                break
            if now > deadline:
                return arrived, Report("timeout", seconds=begun[arrived].limit)
            if now > spinning:
                time.sleep(_NAP)
        if error is None:
            return arrived, None
        return arrived, Report("fault", code=error.code, text=f"{error.name}: {error.text}")

    def _settled(self) -> bool:
        """Whether nothing runs any more after a call has failed; raises the DriverError of a context that is lost."""
        self._record(self._done)
        return self.driver.reached(self._done)

    @staticmethod
    def _has_arrived(begun: _Begun) -> bool:
        binding, slot = begun.binding, begun.slot
        if binding is None:
            return begun.report.status != "fault"
        if not begun.sent:
            return False
        last = slot.address + 8 * (begun.words + binding.result_words)
        return ctypes.c_uint64.from_address(last).value == ARRIVED

    def _read(self, begun: _Begun, *, timed: bool) -> None:
        binding, report = begun.binding, begun.report
        if binding is None:
            return
        if timed and report.status == "ok":
            report.seconds = self.driver.seconds(begun.slot.start, begun.slot.end)
        count = begun.words + binding.result_words
        words = struct.unpack(f"<{count}Q", ctypes.string_at(begun.slot.address, 8 * count)) if count else ()
        if begun.decode is not None:
            report.values = begun.decode(words[: begun.words])
        self._look(words[begun.words :], binding, report)

    def _look(self, words: Sequence[int], binding: Binding, report: Report) -> None:
        """Red zones, inputs, the sink, and the digest of the outputs."""
        zones, hashes = words[: len(binding.checks.ranges)], words[len(binding.checks.ranges) :]
        for (buffer, behind), range_, wrong in zip(binding.owners, binding.checks.ranges, zones, strict=True):
            if wrong < range_.nbytes:
                start = range_.address - binding.addresses[buffer]
                report.hazards.append(("behind" if behind else "before", buffer, start + wrong))
        ranges = binding.hashed.ranges
        if binding.sink:
            if hashes[-1] != self.memory.sink_digest:
                report.status = "stray"
            hashes, ranges = hashes[:-1], ranges[:-1]
        kept, made = hashes[: len(binding.watched)], hashes[len(binding.watched) :]
        report.hazards += [
            ("input", n, 0) for (n, digest), found in zip(binding.watched, kept, strict=True) if found != digest
        ]
        length = sum(r.nbytes for r in ranges[len(binding.watched) :])
        report.digest = f"{(sum(made) + length * INDEX) & (2**64 - 1):016x}"
