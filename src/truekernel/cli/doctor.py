"""`truekernel doctor`: what this machine can do, and what is missing."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from truekernel.cli.output import console, print_json

if TYPE_CHECKING:
    from truekernel.execution.simt import Compiler

_PROBE = """
__global__ void probe(const float* x, float* y) {
    __shared__ float tile[32];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = tile[31 - threadIdx.x];
}
"""
_OPTIONAL = ("another compiler", "GPU", "walls")
"""Audits on a CPU run without them."""
_LIBRARIES = ("torch", "numpy", "scipy", "tree-sitter", "tree-sitter-cuda", "pydantic")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `mend`: the command that adds what is missing, "" when nothing is."""

    what: str
    good: bool
    detail: str
    mend: str = ""


def doctor(*, json: Annotated[bool, Parameter(negative="")] = False) -> int:
    """Say what this machine can do and what is missing, with the command that adds it. Exits with 1 when audits can't run here.

    Parameters
    ----------
    json
        Print one JSON document.
    """
    findings = [_machine(), *_libraries(), *_compilers(), _gpu(), _walls()]
    able = all(finding.good for finding in findings if finding.what not in _OPTIONAL)
    if json:
        print_json({"able": able, "findings": [asdict(finding) for finding in findings]})
        return 0 if able else 1
    out = console()
    for finding in findings:
        out.print(f"{'ok     ' if finding.good else 'missing'}  {finding.what}: {finding.detail}", soft_wrap=True)
        if finding.mend:
            out.print(f"         mend: {finding.mend}", style="bold", soft_wrap=True)
    out.print("This machine can run audits (no GPU is needed)." if able else "Audits can't run here yet.")
    return 0 if able else 1


def _gpu() -> Finding:
    """The first GPU, which only `--device cuda` needs."""
    from truekernel.errors import GpuMissingError
    from truekernel.execution import cuda

    try:
        found = cuda.device_info()
    except GpuMissingError as error:
        return Finding("GPU", False, f"{error} (only --device cuda needs one)")
    if find_spec("cuda") is None or find_spec("cuda.core") is None:
        return Finding(
            "GPU", False, f"{found.name} ({found.arch}), without cuda.core", "pip install 'truekernel[cuda]'"
        )
    return Finding("GPU", True, f"{found.name} ({found.arch}), {found.memory / 2**30:.0f} GiB")


def _walls() -> Finding:
    """The walls behind which `truekernel check` runs candidates, each tried from inside."""
    from truekernel.errors import MachineError
    from truekernel.judge.walls.probing import probe

    try:
        walls = probe()
    except MachineError as error:
        return Finding("walls", False, str(error), "truekernel check needs Linux with namespaces, Landlock or seccomp")
    up = [wall.name for wall in walls if wall.up]
    down = [f"{wall.name} ({wall.detail})" for wall in walls if not wall.up]
    mend = "run where these can be raised: verdicts list what is missing" if down else ""
    return Finding("walls", not down, f"{', '.join(up)}" + (f"; not up: {', '.join(down)}" if down else ""), mend)


def _machine() -> Finding:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.release()} on {platform.machine()}"
    detail = (
        f"{system}, {len(os.sched_getaffinity(0))} processors, {memory:.1f} GiB, Python {platform.python_version()}"
    )
    missing = sorted({"avx2", "fma", "f16c", "bmi2"} - _processor_features())
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return Finding("machine", False, detail, "CPU execution needs Linux on x86-64")
    if missing:
        return Finding(
            "machine", False, f"{detail}, without {', '.join(missing)}", "CPU execution needs x86-64-v3 (2013 or later)"
        )
    return Finding("machine", True, detail)


def _processor_features() -> set[str]:
    """Flags of the first processor, as the kernel names them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return set()
    return next((set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), set())


def _libraries() -> list[Finding]:
    findings = []
    for name in _LIBRARIES:
        try:
            findings.append(Finding(name, True, version(name)))
        except PackageNotFoundError:
            findings.append(Finding(name, False, "not installed", f"pip install {name}"))
    return findings


def _compilers() -> list[Finding]:
    """Every compiler that was found, tried on a kernel; audits use the one that is called "compiler" here, working or not."""
    from truekernel.errors import CompilerMissingError
    from truekernel.execution import simt
    from truekernel.execution.simt.toolchain import INSTALL_HINT, VARIABLE

    try:
        used = simt.default_compiler()
    except CompilerMissingError as error:
        what, _, mend = str(error).partition(": ")
        return [Finding("compiler", False, what, mend)]
    findings: list[Finding] = []
    for compiler in simt.find_compilers():
        failure = _failure(compiler)
        mend = f"{INSTALL_HINT}; or name one that works in {VARIABLE}"
        detail = f"{compiler.label} ({' '.join(compiler.command)})" + (f": {failure}" if failure else "")
        if compiler == used:
            findings.insert(0, Finding("compiler", not failure, detail, mend if failure else ""))
        else:
            findings.append(Finding("another compiler", not failure, detail))
    return findings


def _failure(compiler: Compiler) -> str:
    """Why a compiler can't run a kernel with a barrier in it, or sanitise it and miss that barrier; "" when it can."""
    without_barrier = _PROBE.replace("__syncthreads();", "")
    return (
        _probe_failure(compiler, _PROBE, checked=False)
        or _probe_failure(compiler, _PROBE, checked=True)
        or _probe_failure(compiler, without_barrier, checked=True, expected=("race", "uninitialised_read"))
    )


def _probe_failure(compiler: Compiler, source: str, *, checked: bool, expected: tuple[str, ...] = ("ok",)) -> str:
    import torch

    from truekernel.errors import TruekernelError
    from truekernel.execution import simt
    from truekernel.model import BufferArg, BufferSpec, Configuration, Launch, LaunchPlan

    buffers = (BufferSpec("x", (32,), "float32", "input"), BufferSpec("y", (32,), "float32", "empty"))
    launch = Launch("probe", (1, 1, 1), (32, 1, 1), (BufferArg(0), BufferArg(1)))
    plan = LaunchPlan(buffers, (launch,), (1,))
    x = torch.arange(32, dtype=torch.float32)
    try:
        library = simt.compile_single(source, plan.kernels, simt.Options(checked=checked), compiler=compiler)
        if isinstance(library, simt.CompileFailure):
            return f"does not compile a kernel: {library.message}"
        with simt.Server(compiler) as server:
            server.define("probe", plan, {"x": x})
            run = server.run(library, 0, [("probe", Configuration(checked=checked))], keep_outputs=True)
    except TruekernelError as error:
        return str(error)
    outcome, outputs = run.executions[0].outcome, run.outputs[0]
    if outcome.status in expected and outcome.status != "ok":
        return ""
    if outcome.status not in expected or outputs is None:
        kind = "sanitised kernel" if checked else "kernel"
        return f"its {kind} ends in {outcome.status.replace('_', ' ')} {outcome.message}".strip()
    return "" if torch.equal(outputs[0], x.flip(0)) else "its kernel computes wrong values"
