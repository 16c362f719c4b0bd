"""Server and real worker processes together, without a GPU."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from truekernel.execution.cuda import worker_process, workers
from truekernel.execution.cuda.library import Library
from truekernel.execution.cuda.server import Server
from truekernel.model import BufferArg, BufferSpec, Configuration, Launch, LaunchPlan

PLAN = LaunchPlan(
    (BufferSpec("x", (5,), "float32", "input"), BufferSpec("y", (5,), "float32", "empty")),
    (Launch("k", (1, 1, 1), (5, 1, 1), (BufferArg(0), BufferArg(1))),),
    (1,),
)
GPU = Configuration()
INPUTS = {key: torch.arange(5, dtype=torch.float32) + number for number, key in enumerate("abc")}


@pytest.fixture
def real(monkeypatch):
    def start(module, *, environment=None):
        assert environment["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"
        command = [sys.executable, str(Path(__file__).with_name("cuda_fake_gpu.py"))]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    monkeypatch.setattr(worker_process, "start_module", start)
    monkeypatch.setattr("truekernel.execution.cuda.server.LEAST_SECONDS", 0.25)
    monkeypatch.setattr(workers, "support_code", lambda arch: b"support")


@pytest.fixture
def server(real):
    with opened() as server:
        yield server


def opened(**options):
    server = Server(**options)
    for key, x in INPUTS.items():
        server.define(key, PLAN, {"x": x})
    return server


def library(symbol):
    return Library(symbol.encode(), ("k",), {"k": symbol}, "sm_90")


def run(server, symbol, keys="abc", **options):
    lib = library(symbol)
    try:
        return server.run(lib, 0, [(key, GPU) for key in keys], **options).executions
    finally:
        server.release(lib)


def right(server):
    run_ = server.run(library("double"), 0, [(key, GPU) for key in "abc"], keep_outputs=True)
    return all(torch.equal(out[0], 2 * x) for out, x in zip(run_.outputs, INPUTS.values(), strict=True))


def test_outputs_are_right_and_bits_the_same_in_any_batch(server):
    assert right(server)
    one = [run(server, "double", key)[0].output_hash for key in "abc"]
    assert [e.output_hash for e in run(server, "double", "abcabc" * 9)] == (one * 2) * 9
    assert server.workers_started == 1


def test_red_zone_and_input_are_put_back_in_place(server):
    assert server.watch(library("double"), "a")
    assert all("behind buffer 'y' at byte 24" in e.hazards[0] for e in run(server, "behind"))
    assert all(e.hazards == ("out_of_bounds: wrote to input buffer 'x'",) for e in run(server, "to_input"))
    assert right(server)
    assert server.workers_started == 1


def test_fault_costs_one_worker_and_ends_its_series(server):
    assert server.watch(library("double"), "a")
    found = run(server, "faulty", series=[1, 1, 2])
    assert [(e.case_id, e.outcome.status) for e in found] == [("a", "out_of_bounds"), ("c", "out_of_bounds")]
    assert server.workers_started == 2
    assert right(server)


def test_hang_is_repeated_once_and_known_from_then_on(server):
    assert server.watch(library("double"), "a")
    lib = library("hang")
    found = server.run(lib, 0, [("a", GPU), ("b", GPU)], cpu_seconds=0.1).executions
    assert [e.outcome.status for e in found] == ["timeout"] * 2
    started = server.workers_started
    assert server.run(lib, 0, [("c", GPU)], cpu_seconds=0.1).executions[0].outcome.status == "timeout"
    assert right(server)
    assert server.workers_started == started + 2  # one for the hang, one for what came after it


def test_refused_launch_leaves_the_worker_at_work(server):
    assert [e.outcome.status for e in run(server, "refused")] == ["trap"] * 3
    assert right(server)
    assert server.workers_started == 1


def test_change_that_nothing_announces_voids_what_ran(server):
    assert server.watch(library("double"), "a")
    run(server, "double")
    found = run(server, "far", "b")
    assert (
        found[0].hazards == ("out_of_bounds: wrote to memory that is not its own",) or found[0].outcome.status == "ok"
    )
    assert server.workers_started > 1
    assert right(server)


def test_next_server_takes_over_a_kept_worker(real):
    with opened(keep=True) as first:
        assert right(first)
        pid = first._workers.working.pid
    with opened(keep=True) as second:
        assert right(second)
        assert second._workers.working.pid == pid
    workers.IDLE.end()
    assert workers.IDLE.take(0) is None
