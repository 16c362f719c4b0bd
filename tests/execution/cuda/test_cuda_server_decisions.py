import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

from truekernel.errors import BadInputError, GpuMissingError
from truekernel.execution.cuda import worker_process, workers
from truekernel.execution.cuda.library import Library
from truekernel.execution.cuda.server import Server
from truekernel.model import BufferArg, BufferSpec, Configuration, Launch, LaunchPlan
from truekernel.numerics.expected import Expected

FAKE = Path(__file__).with_name("cuda_fake_worker.py")
PLAN = LaunchPlan(
    (BufferSpec("x", (4,), "float32", "input"), BufferSpec("y", (4,), "float32", "empty")),
    (Launch("k", (1, 1, 1), (4, 1, 1), (BufferArg(0), BufferArg(1))),),
    (1,),
)
INPUTS = {"x": torch.ones(4)}
GPU = Configuration()


@pytest.fixture
def log(tmp_path, monkeypatch):
    path = tmp_path / "log"
    path.touch()
    monkeypatch.setenv("FAKE_LOG", str(path))

    def start(module, *, environment=None):
        return subprocess.Popen([sys.executable, str(FAKE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    monkeypatch.setattr(worker_process, "start_module", start)
    monkeypatch.setattr(worker_process, "GRACE_SECONDS", 0.3)
    monkeypatch.setattr(workers, "support_code", lambda arch: b"support")
    return path


@pytest.fixture
def server(log):
    with opened() as server:
        yield server


@pytest.fixture
def strict(log):
    with opened(strict=True) as server:
        yield server


def opened(**options):
    server = Server(**options)
    for key in "abc":
        server.define(key, PLAN, INPUTS)
    return server


def library(**behaviours):
    full = dict.fromkeys("abc", "ok") | behaviours
    return Library(json.dumps(full).encode(), ("k",), {"k": "k"}, "sm_90")


def events(log):
    return [line.split(" ", 1) for line in log.read_text().splitlines()]


def run(server, lib, keys="abc", **options):
    return server.run(lib, 0, [(key, GPU) for key in keys], **options).executions


def test_good_libraries_share_one_worker(server, log):
    for _ in range(5):
        assert [e.outcome.status for e in run(server, library())] == ["ok"] * 3
    assert server.workers_started == 1
    assert len({pid for pid, text in events(log) if text != "start"}) == 1


def test_fault_in_a_shared_worker_is_decided_alone_in_a_fresh_one(server, log):
    run(server, library())
    found = run(server, library(b="shared fault"))
    assert [e.outcome.status for e in found] == ["ok"] * 3
    assert server.workers_started == 2
    where = [(pid, text) for pid, text in events(log) if text.startswith("shared fault")]
    assert where[0][0] != where[1][0]
    assert [text.rsplit(" ", 1)[1] for _, text in where] == ["shared", "alone"]


def test_fault_that_repeats_alone_counts_and_ends_that_worker_too(server):
    run(server, library())
    found = run(server, library(b="fault"))
    assert [e.outcome.status for e in found] == ["ok", "out_of_bounds", "ok"]
    assert [e.outcome.status for e in run(server, library())] == ["ok"] * 3
    assert server.workers_started == 3


def test_series_end_with_a_fault(server):
    found = run(server, library(a="fault"), series=[1, 1, 3])
    assert [(e.case_id, e.outcome.status) for e in found] == [("a", "out_of_bounds"), ("c", "ok")]
    found = run(server, library(a="refused"), series=[1, 1, 0])
    assert [(e.case_id, e.outcome.status) for e in found] == [("a", "trap"), ("c", "ok")]


def test_timeout_is_repeated_in_another_worker_before_it_counts(server, log):
    found = run(server, library(a="timeout"), "a")
    assert found[0].outcome.status == "timeout"
    pids = [pid for pid, text in events(log) if text.startswith("timeout")]
    assert len(pids) == len(set(pids)) == 2


def test_timeout_in_a_shared_worker_is_repeated_once(server, log):
    run(server, library())
    assert run(server, library(b="timeout"), "b")[0].outcome.status == "timeout"
    assert [text for _, text in events(log) if "timeout" in text] == ["timeout b shared", "timeout b alone"]
    run(server, library())
    assert run(server, library(b="shared timeout"), "b")[0].outcome.status == "ok"


def test_worker_that_says_nothing_is_killed(server):
    found = run(server, library(b="hang"), "b", cpu_seconds=0.1)
    assert found[0].outcome.status == "timeout"
    assert run(server, library(), "b")[0].outcome.status == "ok"


def test_worker_that_dies_twice_is_a_fault_of_the_machine(server):
    found = run(server, library(b="die"), "ab")
    assert {e.outcome.status for e in found} == {"infrastructure"}
    assert run(server, library())[0].outcome.status == "ok"


def test_red_zone_is_put_back_where_nothing_else_has_run_since_the_last_proof(server):
    run(server, library())
    found = run(server, library(b="zone"))
    assert [e.hazards for e in found] == [(), ("out_of_bounds: wrote behind buffer 'y' at byte 16",), ()]
    assert server.workers_started == 1


def test_strict_red_zone_ends_the_worker_and_the_verdict_comes_from_a_fresh_one(strict):
    run(strict, library())
    found = run(strict, library(b="shared zone"))
    assert all(not e.hazards for e in found)
    assert strict.workers_started == 2
    found = run(strict, library(b="zone"))
    assert [e.hazards for e in found] == [(), ("out_of_bounds: wrote behind buffer 'y' at byte 16",), ()]
    assert strict.workers_started == 3
    run(strict, library())
    assert strict.workers_started == 4


def test_fault_counts_at_once_behind_a_sentinel_and_the_rest_runs_elsewhere(server, log):
    assert server.watch(library(), "a")
    found = run(server, library(b="fault"))
    assert [e.outcome.status for e in found] == ["ok", "out_of_bounds", "ok"]
    assert server.workers_started == 2
    assert [text for _, text in events(log) if "fault" in text] == ["fault b shared"]


def test_strict_fault_is_repeated_even_behind_a_sentinel(strict, log):
    assert strict.watch(library(), "a")
    assert [e.outcome.status for e in run(strict, library(b="fault"))] == ["ok", "out_of_bounds", "ok"]
    assert [text for _, text in events(log) if "fault" in text] == ["fault b shared", "fault b alone"]


def test_input_that_was_overwritten_is_a_hazard(server):
    (found,) = run(server, library(a="input"), "a")
    assert found.hazards == ("out_of_bounds: wrote to input buffer 'y'",)


def test_stray_write_voids_and_becomes_a_hazard(server):
    run(server, library())
    found = run(server, library(b="far"))
    assert all("memory that is not its own" in e.hazards[0] for e in found)
    assert not run(server, library())[0].hazards


def test_sentinel_that_changes_voids_what_ran(server, log):
    good = library(c="ok", other="code")
    assert server.watch(good, "c")
    before = Counter(text for _, text in events(log))
    run(server, library(), "a")
    after = Counter(text for _, text in events(log))
    assert after["ok c shared"] == before["ok c shared"] + 1
    assert server.workers_started == 1
    object.__setattr__(good, "cubin", library(c="other").cubin)  # from the next worker on it gives other bits
    run(server, library(a="shared fault"), "a")
    started = server.workers_started
    assert all("not its own" in e.hazards[0] for e in run(server, library(), "a"))
    assert server.workers_started > started


def test_no_sentinel_from_a_library_that_faults(server):
    assert not server.watch(library(a="fault"), "a")


def test_repeats_tell_how_many_differ(server):
    server.define("d", PLAN, INPUTS)
    lib = library(d="ok")
    assert server.repeat(lib, "d", GPU, 5).differing == 0
    with pytest.raises(BadInputError, match="times=1"):
        server.repeat(lib, "d", GPU, 1)


def test_outputs_come_back_as_tensors(server):
    outputs = server.run(library(), 0, [("a", GPU)], keep_outputs=True).outputs
    assert torch.equal(outputs[0][0], torch.zeros(4))
    assert server.run(library(), 0, [("a", GPU)]).outputs == [None]


def test_forgetting_frees_contents_that_nobody_needs(server, log):
    server.define("d", PLAN, {"x": torch.full((4,), 2.0)})
    run(server, library(d="ok"), "d")
    server.forget("d")
    assert "drop 1" in [text for _, text in events(log)]
    with pytest.raises(BadInputError, match="no case 'd'"):
        run(server, library(d="ok"), "d")


def test_calls_that_can_not_work_are_refused(server):
    with pytest.raises(BadInputError, match="no variant 3"):
        server.run(library(), 3, [("a", GPU)])
    with pytest.raises(BadInputError, match="schedules by itself"):
        server.run(library(), 0, [("a", Configuration("reverse"))])
    with pytest.raises(BadInputError, match=r"cuda\.sanitise"):
        server.run(library(), 0, [("a", Configuration(checked=True))])
    with pytest.raises(BadInputError, match="no input 'x'"):
        server.define("e", PLAN, {})
    wrong = Expected("y", "float32", "value", torch.ones(3), torch.ones(3), torch.ones(3))
    with pytest.raises(BadInputError, match="expected 'y' has 3 elements"):
        server.define("e", PLAN, INPUTS, [wrong])


def test_sick_gpu_and_missing_gpu_are_said(log, monkeypatch):
    monkeypatch.setenv("FAKE_SICK", "1")
    with pytest.raises(GpuMissingError, match="does not compute what it should"), Server():
        pass
    monkeypatch.setenv("FAKE_HELLO", '{"error": "no_device", "text": "device 0: 0 are visible"}')
    with pytest.raises(GpuMissingError, match="no NVIDIA GPU"), Server():
        pass


def test_sentinel_that_is_not_steady_is_given_up_and_condemns_nothing(server, log):
    good = library(c="ok", other="code")
    assert server.watch(good, "c")
    object.__setattr__(server._sentinel, "digest", "00000000000000cc")
    run(server, library(), "a")
    assert server.workers_started == 3  # it gives other bits, always: both workers are lost
    object.__setattr__(good, "cubin", library(c="unsteady").cubin)
    object.__setattr__(server._sentinel, "digest", "00000000000000aa")
    run(server, library(a="shared fault"), "a")
    started = server.workers_started
    found = run(server, library(), "a")
    assert (found[0].outcome.status, found[0].hazards) == ("ok", ())
    assert server._sentinel is None
    assert server.workers_started == started


def test_probe_stands_in_where_no_program_is_steady(server):
    assert not server.watch(library(c="unsteady"), "c")
    run(server, library(), "a")
    assert [e.outcome.status for e in run(server, library(b="fault"))] == ["ok", "out_of_bounds", "ok"]
    assert server.workers_started == 2
