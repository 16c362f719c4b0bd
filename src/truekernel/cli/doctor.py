"""`truekernel doctor`: what this machine can do, and what is missing."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from truekernel.cli.output import console, print_json

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
    findings = [_machine(), *_libraries(), *_compilers()]
    able = all(finding.good for finding in findings if finding.what != "another compiler")
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
    """Every compiler that was found, tried on a kernel; the first that works is the one that audits use."""
    from truekernel.execution import simt

    findings: list[Finding] = []
    for compiler in simt.find_compilers():
        failure = simt.probe(compiler)
        working = not failure
        first = working and not any(f.good and f.what == "compiler" for f in findings)
        detail = f"{compiler.label} ({' '.join(compiler.command)})" + ("" if working else f": {failure}")
        findings.append(Finding("compiler" if first else "another compiler", working, detail))
    if not any(finding.what == "compiler" for finding in findings):
        findings.append(Finding("compiler", False, "no C++ compiler works", simt.INSTALL_HINT))
    return findings
