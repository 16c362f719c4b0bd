"""Run many libraries under compute-sanitizer, with allocations of the exact size, and say what it found in each."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from truekernel.errors import GpuMissingError, MachineError, TruekernelError
from truekernel.execution.cuda.library import Library
from truekernel.execution.cuda.sanitiser_log import TOOLS, Finding, Log, Tool, distinct, parse
from truekernel.execution.cuda.wire import Channel
from truekernel.execution.cuda.wire_cases import case_message
from truekernel.model import LaunchPlan

START_SECONDS = 60.0
JOB_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Job:
    """One library on one case. Compile it with Options(checked=True), so that findings have lines."""

    library: Library
    plan: LaunchPlan
    inputs: Mapping[str, torch.Tensor]
    mutates: Sequence[str] = ()


@dataclass(slots=True)
class Sanitised:
    """What one job showed. `findings`: distinct ones of all tools, in their order; `unfinished`: tools under which it hung or was lost, with the reason."""

    findings: list[Finding] = field(default_factory=list)
    unfinished: dict[str, str] = field(default_factory=dict)


def find_sanitiser() -> str:
    """Path of compute-sanitizer. Raises TruekernelError with the mend when there is none."""
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    candidates = [shutil.which("compute-sanitizer")]
    for root in filter(None, roots):
        candidates += [f"{root}/bin/compute-sanitizer", f"{root}/compute-sanitizer/compute-sanitizer"]
    found = next((c for c in candidates if c and Path(c).is_file() and os.access(c, os.X_OK)), None)
    if found is None:
        raise TruekernelError(
            "compute-sanitizer is not installed: install the CUDA toolkit, or add its bin folder to PATH"
        )
    return found


def sanitise(
    jobs: Sequence[Job], tools: Sequence[Tool] = TOOLS, *, job_seconds: float = JOB_SECONDS
) -> list[Sanitised]:
    """Run all jobs under each tool, many in a process; a job that ends its process, or takes longer than `job_seconds`, costs a new one.

    Raises TruekernelError when compute-sanitizer is missing, GpuMissingError when it can't watch this GPU.
    """
    program = find_sanitiser()
    results = [Sanitised() for _ in jobs]
    with tempfile.TemporaryDirectory(prefix="truekernel-") as folder:
        path = Path(folder) / "jobs"
        _write(path, jobs)
        for tool in tools:
            _under(program, tool, path, results, job_seconds)
    return results


def _write(path: Path, jobs: Sequence[Job]) -> None:
    written: set[str] = set()
    with path.open("wb") as file:
        channel = Channel(-1, file.fileno())
        for number, job in enumerate(jobs):
            case = case_message(str(number), job.plan, job.inputs, None, job.mutates)
            for name, data in case.contents.items():
                if name not in written:
                    written.add(name)
                    channel.send({"ask": "content", "name": name}, [data])
            channel.send(
                {"ask": "job", "number": number, "case": case.message, "symbols": dict(job.library.symbols)},
                [job.library.cubin],
            )


def _under(program: str, tool: Tool, path: Path, results: list[Sanitised], job_seconds: float) -> None:
    """All jobs under one tool."""
    first = 0
    while first < len(results):
        lines, overdue = _process(command(program, tool, path, first), job_seconds)
        log = parse(lines, tool)
        if log.started < first:
            raise _refused(lines)
        for finding in distinct(log.findings):
            if 0 <= finding.job < len(results):
                results[finding.job].findings.append(finding)
        if log.started not in log.ended:
            why = f"did not end within {job_seconds:g} s" if overdue else "its process ended"
            results[log.started].unfinished[tool] = why
        first = log.started + 1


def command(program: str, tool: Tool, path: Path, first: int) -> list[str]:
    """The command line for the jobs from `first` on."""
    fill = "unwritten" if tool == "initcheck" else "poison"
    options = ["--tool", tool, "--print-limit", "1000000", "--show-backtrace", "no"]
    if tool == "memcheck":
        options += ["--destroy-on-device-error", "kernel"]
    runner = [sys.executable, "-m", "truekernel.execution.cuda.sanitiser_runner", str(path), str(first), fill]
    return [program, *options, *runner]


def _process(command: Sequence[str], job_seconds: float) -> tuple[list[str], bool]:
    """Lines that a process writes until it ends, and whether it was killed since nothing ended within `job_seconds`."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    data, overdue = bytearray(), False
    deadline = time.monotonic() + START_SECONDS + job_seconds
    marks = 0
    try:
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                overdue = True
                break
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                break
            data += chunk
            if (now := data.count(b"@@ ")) != marks:
                marks, deadline = now, time.monotonic() + job_seconds
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    return data.decode(errors="replace").splitlines(), overdue


def _refused(lines: Sequence[str]) -> TruekernelError:
    """The error of a run in which no job began."""
    text = next((line for line in lines if "not supported" in line.lower() or "error" in line.lower()), "")
    if "not supported" in text.lower():
        return GpuMissingError(
            f"compute-sanitizer can't watch this GPU ({text.strip('= ')}): run it on the bare machine or in a VM"
        )
    return MachineError(
        f"compute-sanitizer did not start a job: {text.strip('= ') or (lines[-1] if lines else 'no output')}"
    )


__all__ = ["TOOLS", "Finding", "Job", "Log", "Sanitised", "find_sanitiser", "sanitise"]
