"""The process that launches and takes the time, on a device that only keeps a list of what it was asked."""

from __future__ import annotations

import ctypes
import io
import json
from pathlib import Path
from typing import Any

import pytest

from truekernel.execution.cuda.driver import DriverError
from truekernel.judge.bench import device_timer, serving

CALL, FIXED = 3e-6, 40e-6
"""Seconds that a call takes there, and a launch of any graph."""


class Device:
    """A driver whose clock runs by what was launched."""

    l2 = 4096
    free = 1 << 30

    def __init__(self) -> None:
        self.memory: dict[int, bytearray] = {}
        self.graphs: list[list[tuple[str, Any]]] = []
        self.recording: list[tuple[str, Any]] | None = None
        self.clock = 0.0
        self.marks: dict[int, float] = {}
        self.done: list[tuple[str, Any]] = []

    def open(self, device: int) -> None:
        assert device == 0

    def load(self, cubin: bytes) -> str:
        return cubin.decode()

    def function(self, module: str, symbol: str) -> str:
        return f"{module}/{symbol}"

    def stream(self) -> str:
        return "stream"

    def event(self) -> int:
        self.marks[len(self.marks)] = 0.0
        return len(self.marks) - 1

    def attribute(self, device: int, attribute: int) -> int:
        assert (device, attribute) == (0, 38)
        return self.l2

    def device_name(self, device: int) -> str:
        return f"device {device}"

    def free_memory(self) -> int:
        return self.free

    def allocate(self, nbytes: int) -> int:
        address = 1 << 20 | len(self.memory) << 8
        self.memory[address] = bytearray(nbytes)
        return address

    def upload(self, address: int, data: bytes) -> None:
        self.memory[address][:] = data

    def download(self, address: int, nbytes: int) -> bytearray:
        return self.memory[address][:nbytes]

    def seconds(self, start: int, end: int) -> float:
        return self.marks[end] - self.marks[start]

    def launch(self, function: str, grid: Any, block: Any, parameters: Any, **more: Any) -> None:
        assert self.recording is not None
        address = int.from_bytes(bytes((ctypes.c_char * 8).from_address(parameters[0])), "little")
        self.recording.append(("launch", address))

    def call(self, name: str, *arguments: Any) -> None:
        if name == "cuStreamBeginCapture_v2":
            self.recording = []
        elif name == "cuStreamEndCapture":
            assert self.recording is not None
            self.graphs.append(self.recording)
            arguments[1]._obj.value = len(self.graphs)
            self.recording = None
        elif name == "cuGraphInstantiateWithFlags":
            arguments[0]._obj.value = arguments[1].value
        elif name == "cuGraphLaunch":
            graph = self.graphs[arguments[0].value - 1]
            self.done += graph
            self.clock += FIXED + CALL * sum(what == "launch" for what, _ in graph)
        elif name == "cuEventRecord":
            self.marks[arguments[0]] = self.clock
        elif name == "cuMemsetD8Async":
            entry = (f"fill {arguments[1]}", arguments[0])
            self.done.append(entry) if self.recording is None else self.recording.append(entry)
        else:
            assert name == "cuCtxSynchronize", name


@pytest.fixture
def timer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> device_timer.Timer:
    (tmp_path / "code.cubin").write_bytes(b"code")
    for number in range(2):
        (tmp_path / f"set-{number}.bin").write_bytes(bytes([number + 1] * 1024))
    buffers = [{"nbytes": 1024, "role": "input"}, {"nbytes": 512, "role": "empty"}, {"nbytes": 512, "role": "zeros"}]
    launch = {
        "kernel": "k",
        "grid": [1, 1, 1],
        "block": [32, 1, 1],
        "shared": 0,
        "cooperative": False,
        "args": [["buffer", 0, 0]],
    }
    job = {
        "cubin": "code.cubin",
        "symbols": {"k": "_k"},
        "buffers": buffers,
        "launches": [launch],
        "outputs": [1],
        "sets": [{"0": str(tmp_path / f"set-{number}.bin")} for number in range(2)],
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    monkeypatch.setattr(device_timer, "Driver", Device)
    return device_timer.Timer(tmp_path)


def device(timer: device_timer.Timer) -> Device:
    return timer._driver  # type: ignore[return-value]


def test_a_call_takes_what_a_slope_says(timer: device_timer.Timer) -> None:
    said = serving.answer(timer, {"time": 10, "rotating": True, "repeats": 4})
    assert said["device"] == pytest.approx([CALL] * 4)
    assert len(said["wall"]) == 4


def test_copies_are_three_times_the_cache_and_take_turns(timer: device_timer.Timer) -> None:
    assert timer.hello["copies"] == 6  # of 2048 bytes, for a cache of 4096
    serving.slopes(timer, 6, True, 1)
    first = [address for what, address in device(timer).graphs[0] if what == "launch"]
    assert len(set(first)) == 6
    contents = [bytes(device(timer).memory[address][:1]) for address in first]
    assert contents == [b"\1", b"\2"] * 3


def test_a_warm_call_has_one_copy(timer: device_timer.Timer) -> None:
    serving.slopes(timer, 6, False, 1)
    assert len({address for what, address in device(timer).graphs[0] if what == "launch"}) == 1


def test_buffers_of_zeros_are_cleared_within_each_call(timer: device_timer.Timer) -> None:
    serving.slopes(timer, 3, True, 1)
    assert [what for what, _ in device(timer).graphs[0]] == ["fill 0", "launch"] * 3


def test_poison_covers_what_must_be_written_and_nothing_else(timer: device_timer.Timer) -> None:
    serving.answer(timer, {"poison": True})
    found = [address for what, address in device(timer).done if what == "fill 255"]
    assert found == [addresses[1] for addresses in timer._copies]


def test_outputs_leave_as_files(timer: device_timer.Timer, tmp_path: Path) -> None:
    device(timer).memory[timer._copies[2][1]][:] = b"\7" * 512
    (file,) = serving.answer(timer, {"outputs": 2})["files"]
    assert (tmp_path / file).read_bytes() == b"\7" * 512


def test_memory_bounds_the_copies(timer: device_timer.Timer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Device, "free", 8192)
    assert timer._count() == 1


def test_what_fails_is_an_answer(timer: device_timer.Timer, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def fails(*_: Any) -> None:
        raise DriverError(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal access", "cuCtxSynchronize")

    monkeypatch.setattr(timer, "elapsed", fails)
    monkeypatch.setattr(
        serving.sys, "stdin", io.StringIO('{"time": 1, "rotating": true, "repeats": 1}\n{"nonsense": 1}\n')
    )
    serving.serve(timer)
    hello, failed, unknown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert hello["copies"] == 6
    assert "ILLEGAL_ADDRESS" in failed["error"]
    assert "unknown request" in unknown["error"]
