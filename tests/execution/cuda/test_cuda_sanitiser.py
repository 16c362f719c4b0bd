import stat
import sys
from pathlib import Path

import pytest
import torch

from truekernel.errors import GpuMissingError, TruekernelError
from truekernel.execution.cuda.library import Library
from truekernel.execution.cuda.sanitiser import Job, find_sanitiser, sanitise
from truekernel.execution.cuda.sanitiser_log import distinct, parse
from truekernel.model import BufferArg, BufferSpec, Launch, LaunchPlan

MEMCHECK = """\
========= COMPUTE-SANITIZER
@@ job 0
@@ buffer 0 0 0x7f4fd0800000 4000
@@ buffer 0 1 0x7f4fd0801000 4000
@@ end 0 ok
@@ job 1
@@ buffer 1 0 0x7f4fd0800000 4000
@@ buffer 1 1 0x7f4fd0801000 4000
========= Invalid __global__ write of size 4 bytes
=========     at k(const float *, float *, int)+0xc0 in kernel.cu:3
=========     by thread (7,0,0) in block (2,1,0)
=========     Access to 0x7f4fd0801fa0 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f4fd0801000 of size 4,000 bytes
=========
========= Invalid __shared__ read of size 4 bytes
=========     at void reduce<(int)256, float>(float *)+0x90
=========     by thread (1,0,0) in block (0,0,0)
=========     Address 0x7ff is misaligned
=========
@@ end 1 ok
@@ job 2
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure" on CUDA API call to cuCtxSynchronize.
=========
@@ end 2 CUDA_ERROR_LAUNCH_FAILED
@@ broken 2
========= ERROR SUMMARY: 2 errors
"""
RACECHECK = """\
@@ job 3
========= Error: Race reported between Write access at k(const float *, float *, int)+0x100 in kernel.cu:4
=========     and Read access at k(const float *, float *, int)+0x180 in kernel.cu:5 [4000 hazards]
=========
@@ end 3 ok
@@ done
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
INITCHECK = """\
@@ job 4
@@ buffer 4 0 0x7f3eda800000 4000
@@ buffer 4 1 0x7f3eda801000 4000
========= Uninitialized __global__ memory read of size 4 bytes
=========     at k(const float *, float *, int)+0xc0 in kernel.cu:3
=========     by thread (0,0,0) in block (1,0,0)
=========     Address 0x7f3eda801400
=========
========= Uninitialized __global__ memory read of size 4 bytes
=========     at k(const float *, float *, int)+0xc0 in kernel.cu:3
=========     by thread (1,0,0) in block (1,0,0)
=========     Address 0x7f3eda801404
=========
@@ end 4 ok
"""
SYNCCHECK = """\
@@ job 5
========= Barrier error detected. Divergent thread(s) in warp.
=========     at k(const float *, float *, int)+0x70 in kernel.cu:3
=========     by thread (32,0,0) in block (2,0,0)
=========
@@ end 5 ok
========= ERROR SUMMARY: 1 error
"""
PLAN = LaunchPlan(
    (BufferSpec("x", (4,), "float32", "input"), BufferSpec("y", (4,), "float32", "empty")),
    (Launch("k", (1, 1, 1), (4, 1, 1), (BufferArg(0), BufferArg(1))),),
    (1,),
)


def test_memcheck_gives_kernel_line_thread_and_buffer():
    log = parse(MEMCHECK.splitlines(), "memcheck")
    first, second = log.findings
    assert (first.job, first.status, first.kernel, first.line) == (
        1,
        "out_of_bounds",
        "k(const float *, float *, int)",
        3,
    )
    assert (first.thread, first.block) == ((7, 0, 0), (2, 1, 0))
    assert (first.address, first.buffer, first.offset) == (0x7F4FD0801FA0, 1, 4000)
    assert (second.kernel, second.line, second.buffer) == ("void reduce<(int)256, float>(float *)", 0, -1)
    assert log.ended == {0: "ok", 1: "ok", 2: "CUDA_ERROR_LAUNCH_FAILED"}
    assert (log.started, log.broken) == (2, 2)
    assert not log.problems


def test_racecheck_gives_both_lines():
    (found,) = parse(RACECHECK.splitlines(), "racecheck").findings
    assert (found.job, found.status, found.line, found.other_line) == (3, "race", 4, 5)


def test_initcheck_findings_of_one_place_are_one():
    log = parse(INITCHECK.splitlines(), "initcheck")
    assert [f.offset for f in log.findings] == [1024, 1028]
    (found,) = distinct(log.findings)
    assert (found.status, found.line, found.buffer, found.count) == ("uninitialised_read", 3, 1, 2)


def test_synccheck_is_barrier_divergence():
    (found,) = parse(SYNCCHECK.splitlines(), "synccheck").findings
    assert (found.status, found.line, found.thread) == ("barrier_divergence", 3, (32, 0, 0))


def test_log_without_findings_has_none():
    clean = "========= COMPUTE-SANITIZER\n@@ job 0\n@@ end 0 ok\n@@ done\n========= ERROR SUMMARY: 0 errors\n"
    log = parse(clean.splitlines(), "memcheck")
    assert not log.findings
    assert not log.problems
    assert log.ended == {0: "ok"}


def test_older_place_format_is_read():
    text = "@@ job 0\n========= Invalid __global__ write of size 4 bytes\n=========     at 0x2b0 in kernel.cu:12:k(float*)\n"
    (found,) = parse(text.splitlines(), "memcheck").findings
    assert (found.kernel, found.line) == ("k(float*)", 12)


FAKE = """#!{python}
import sys, time
first = int(sys.argv[-2])
jobs = {jobs!r}
for number, text in enumerate(jobs):
    if number < first:
        continue
    print(f"@@ job {{number}}", flush=True)
    if text == "hang":
        time.sleep(600)
    if text == "dies":
        sys.exit(1)
    if text:
        print("========= Invalid __global__ write of size 4 bytes\\n=========     at k(float*)+0x10 in kernel.cu:" + text + "\\n=========")
    print(f"@@ end {{number}} ok", flush=True)
print("@@ done")
"""


def planted(tmp_path, monkeypatch, text):
    program = tmp_path / "compute-sanitizer"
    program.write_text(text)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))


def jobs(count):
    library = Library(b"cubin", ("k",), {"k": "k"}, "sm_90", checked=True)
    return [Job(library, PLAN, {"x": torch.ones(4)}) for _ in range(count)]


def test_job_that_ends_or_hangs_its_process_does_not_cost_the_others(tmp_path, monkeypatch):
    text = FAKE.format(python=sys.executable, jobs=["", "5", "dies", "hang", "9"])
    planted(tmp_path, monkeypatch, text)
    monkeypatch.setattr("truekernel.execution.cuda.sanitiser.START_SECONDS", 1.0)
    results = sanitise(jobs(5), ["memcheck"], job_seconds=0.5)
    assert [[f.line for f in r.findings] for r in results] == [[], [5], [], [], [9]]
    assert [bool(r.unfinished) for r in results] == [False, False, True, True, False]
    assert "did not end within 0.5 s" in results[3].unfinished["memcheck"]


def test_gpu_that_can_not_be_watched_is_said_in_one_line(tmp_path, monkeypatch):
    planted(tmp_path, monkeypatch, f"#!{sys.executable}\nprint('========= Error: Device not supported')\n")
    with pytest.raises(GpuMissingError, match="can't watch this GPU"):
        sanitise(jobs(1), ["memcheck"])


def test_missing_sanitiser_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    if Path("/usr/local/cuda/bin/compute-sanitizer").exists():
        pytest.skip("this machine has one")
    with pytest.raises(TruekernelError, match="compute-sanitizer is not installed"):
        find_sanitiser()
