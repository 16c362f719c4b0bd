"""What the worker process does, on a driver whose device is this process' own memory."""

import ctypes
import struct

import pytest
import torch
from cuda_fake_driver import FakeDriver

from truekernel.execution.cuda.address_space import REGION, SPAN, STEP, Space
from truekernel.execution.cuda.device_memory import ZONE, Memory
from truekernel.execution.cuda.running import Executor
from truekernel.execution.cuda.scratch import Scratch
from truekernel.execution.cuda.wire_cases import case_message
from truekernel.execution.cuda.worker import Worker
from truekernel.model import BufferArg, BufferSpec, Launch, LaunchPlan
from truekernel.numerics.digest import digest

PLAN = LaunchPlan(
    (BufferSpec("x", (5,), "float32", "input"), BufferSpec("y", (5,), "float32", "empty")),
    (Launch("k", (1, 1, 1), (5, 1, 1), (BufferArg(0), BufferArg(1))),),
    (1,),
)
X = torch.arange(5, dtype=torch.float32)


def pointers(parameters):
    return [ctypes.c_uint64.from_address(parameters[k]).value for k in range(2)]


def double(driver, parameters):
    x, y = pointers(parameters)
    ctypes.memmove(y, struct.pack("<5f", *(2 * v for v in struct.unpack("<5f", ctypes.string_at(x, 20)))), 20)


def behind(driver, parameters):
    double(driver, parameters)
    ctypes.c_char.from_address(pointers(parameters)[1] + 24).value = b"!"


def to_input(driver, parameters):
    double(driver, parameters)
    ctypes.c_float.from_address(pointers(parameters)[0]).value = 7.0


class Sent:
    def __init__(self):
        self.frames = []

    def hold(self, message, payload=()):
        self.frames.append((message, [bytes(p) for p in payload]))

    def flush(self):
        pass


class Bench:
    def __init__(self, **kernels):
        self.driver = FakeDriver({"double": double, "behind": behind, "input": to_input, **kernels})
        self.sent = Sent()
        self.worker = Worker(self.sent)
        self.worker.driver = self.driver
        self.worker.memory = Memory(self.driver, b"")
        self.worker.executor = Executor(self.worker.memory)
        self.send()

    def send(self):
        for key in "abc":
            case = case_message(key, PLAN, {"x": X}, None, (), None)
            for name, data in case.contents.items():
                if name not in self.worker.memory.blobs:
                    request = {"names": [name], "sizes": [len(data)]}
                    assert self.worker.ask_contents(request, bytearray(data)) == {}
            self.worker.ask_cases({"cases": [case.message]}, bytearray())

    def run(self, symbol, keys="abc", mend=True, outputs=False, series=None, seconds=0.05, fresh=False):
        """Cases with a kernel."""
        if 0 not in self.worker._modules:
            self.worker.ask_library({"number": 0}, bytearray(b"cubin"))
        executions = [
            {"key": key, "fill": "poison", "seconds": seconds, "outputs": outputs, "judge": False, "series": s}
            for key, s in zip(keys, series or [0] * len(keys), strict=True)
        ]
        request = {"library": 0, "executions": executions, "ended": 0, "mend": mend, "bare": False, "verify": True}
        request |= {"symbols": {"k": symbol}, "fresh": fresh}
        self.sent.frames = []
        end = self.worker.ask_run(request | {"tolerances": [], "rhos": []}, bytearray())
        found = [(m["execution"], m["status"], m["hazards"], m["digest"]) for m, _ in self.sent.frames]
        return found, end


GOOD_END = {"spoiled": [], "fatal": False, "changed": None}
DIGEST = digest([X * 2])


def test_many_executions_cost_one_wait():
    bench = Bench()
    assert bench.run("double")[1] == GOOD_END  # the first of each case lays it out
    bench.driver.waits = 0
    found, end = bench.run("double", keys="abcabcabc")
    assert end == GOOD_END
    assert found == [(k, "ok", [], DIGEST) for k in range(9)]
    assert bench.driver.waits <= 3


def test_outputs_are_those_of_their_own_execution():
    bench = Bench()
    bench.run("double", outputs=True)
    assert [payload for _, payload in bench.sent.frames] == [[struct.pack("<5f", 0, 2, 4, 6, 8)]] * 3


def test_overwritten_red_zone_is_told_once_an_execution_and_mended():
    bench = Bench()
    bench.run("double")
    found, end = bench.run("behind")
    assert [(k, s, h) for k, s, h, _ in found] == [(k, "ok", [["behind", 1, 24]]) for k in range(3)]
    assert end == GOOD_END
    assert bench.run("double")[0] == [(k, "ok", [], DIGEST) for k in range(3)]
    found, end = bench.run("behind", mend=False)
    assert len(found) == 1


def test_overwritten_input_is_told_and_must_be_sent_again():
    bench = Bench()
    bench.run("double")
    found, end = bench.run("input")
    assert [(s, h) for _, s, h, _ in found] == [("ok", [["input", 0, 0]])]
    assert len(end["spoiled"]) == 1
    assert not bench.worker.memory.blobs
    bench.send()
    assert bench.run("double")[0] == [(k, "ok", [], DIGEST) for k in range(3)]


@pytest.mark.parametrize("warm", [True, False])
def test_fault_belongs_to_the_execution_that_did_not_arrive(warm):
    calls = []

    def second(driver, parameters):
        calls.append(1)
        double(driver, parameters)
        if len(calls) == 2 + 3 * warm:
            driver.fault(700)

    bench = Bench(second=second)
    if warm:
        bench.run("second")
    found, end = bench.run("second")
    assert [(k, s) for k, s, _, _ in found] == [(0, "ok"), (1, "fault")]
    assert end == {"spoiled": [], "fatal": True, "changed": None}
    assert bench.sent.frames[1][0]["code"] == 700


def test_deadline_counts_from_the_end_of_the_one_before():
    calls = []

    def third(driver, parameters):
        calls.append(1)
        double(driver, parameters)
        driver.hung = len(calls) == 6

    bench = Bench(third=third)
    bench.run("third")
    found, end = bench.run("third")
    assert [(k, s) for k, s, _, _ in found] == [(0, "ok"), (1, "ok"), (2, "timeout")]
    assert end["fatal"]


def test_missing_kernel_ends_its_series():
    bench = Bench()
    found, _ = bench.run("nowhere", series=[1, 1, 2])
    assert [(k, s) for k, s, _, _ in found] == [(0, "no_kernel"), (2, "no_kernel")]


def test_module_stays_until_it_is_to_start_afresh():
    bench = Bench()
    loaded = []
    bench.driver.load = lambda cubin: loaded.append(cubin) or cubin
    bench.run("double")
    assert len(loaded) == 1
    request = {"library": 0, "executions": [], "ended": 0, "mend": True, "bare": False, "verify": True}
    request |= {"symbols": {"k": "double"}, "tolerances": [], "rhos": []}
    for fresh, times in ((False, 1), (True, 2), (False, 2)):
        assert bench.worker.ask_run(request | {"fresh": fresh}, bytearray()) == GOOD_END
        assert len(loaded) == times


def test_look_finds_contents_that_changed_unseen():
    bench = Bench()
    bench.run("double")
    (blob,) = bench.worker.memory.blobs.values()
    ctypes.c_char.from_address(blob.address).value = b"!"
    assert bench.run("double", keys="")[1]["changed"] is not None


def test_scratch_sends_what_was_put_since_the_last_time():
    driver = FakeDriver()
    scratch = Scratch(driver)
    first, second = scratch.put(b"one"), scratch.put(b"two" * 100)
    assert second % 256 == 0
    scratch.send()
    assert (ctypes.string_at(first, 3), ctypes.string_at(second, 300)) == (b"one", b"two" * 100)
    scratch.free(first)
    assert scratch.put(b"three") == first
    assert ctypes.string_at(first, 3) == b"one"
    scratch.send()
    assert ctypes.string_at(first, 5) == b"three"
    large = scratch.put(b"x" * (3 << 20))
    scratch.send()
    assert ctypes.string_at(large + (3 << 20) - 1, 1) == b"x"


def test_space_has_sink_on_both_sides_of_what_was_allocated():
    driver = FakeDriver(piecewise=True)
    space = Space(driver, 0)
    piece = driver.maps[space.sink]

    def sinks():
        return {at for at, handle in driver.maps.items() if handle == piece}

    before = sinks()
    address = space.resident.allocate(3 * STEP)
    real = {at: handle for at, handle in driver.maps.items() if handle != piece}
    assert sorted(real) == [address, address + STEP, address + 2 * STEP]
    assert len(set(real.values())) == 1  # one piece of memory
    near = {address + k * STEP for k in (*range(-SPAN // STEP, 0), *range(3, (REGION + SPAN) // STEP))}
    assert near <= sinks()
    assert sinks() == before - set(real)
    space.hide()
    assert set(driver.maps) == {*real, space.sink}
    other = space.resident.allocate(STEP)
    space.show()
    assert driver.maps[other] not in (piece, *real.values())
    assert sinks() == before - set(real) - {other}


def test_region_gives_back_and_joins_what_was_freed():
    region = Space(FakeDriver(piecewise=True), 0).arena
    first, second, third = (region.allocate(1000) for _ in range(3))
    assert (second - first, third - second) == (1024, 1024)
    assert region.owns(second)
    for address in (first, third, second):
        region.free(address)
    assert not region.owns(second)
    assert region.allocate(REGION) == first
    assert region.allocate(1) is None
    assert ZONE < STEP
