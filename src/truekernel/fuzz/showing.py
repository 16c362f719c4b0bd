"""Whether a finding's script shows by itself, in a fresh process, what is wrong."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from truekernel.fuzz.library import Library
from truekernel.fuzz.records import Finding, OutcomeKind
from truekernel.fuzz.script import script

SECONDS = 60.0
HANG_SECONDS = 30.0
MEMORY = 10 << 30
"""Bytes of address space: the library's own, and as much as an executor gives a case."""
DISAGREES = re.compile(r"^(\w+\.)*(AssertionError|GradcheckError|InductorError|BackendCompilerFailed)\b", re.MULTILINE)
"""How a script ends that found two results apart, or a compiler that fails."""
UNSHOWN = frozenset({"memory"})
"""Kinds that a script can't show by how it ends."""


def _judges(finding: Finding, library: Library) -> bool:
    """Whether the judge prints more than a comment."""
    oracle = next(one for one in library.oracles() if one.name == finding.oracle)
    return any(not line.startswith("#") for line in oracle.script(finding.case))


def shows(finding: Finding, library: Library) -> bool:
    """Whether the script of a finding fails as the finding says. What a script can't show counts as shown."""
    if finding.kind in UNSHOWN or (finding.oracle != "execution" and not _judges(finding, library)):
        return True
    with tempfile.TemporaryDirectory(prefix="truekernel-fuzz-") as folder:
        path = Path(folder) / "finding.py"
        path.write_text(script(finding, library), encoding="utf-8")
        return fails(path, finding.kind)[0]


def fails(path: Path, kind: OutcomeKind) -> tuple[bool, str]:
    """Whether a script ends as a failure of a kind does, and its last words: a mismatch by its assertion, a hang by not ending, anything else by any end but a good one."""
    process = subprocess.Popen(
        [sys.executable, str(path.resolve())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
    limit = HANG_SECONDS if kind == "hang" else SECONDS
    try:
        words = process.communicate(timeout=limit)[1].decode(errors="replace")
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return kind == "hang", f"no end after {limit:g} s"
    said = f"exit {process.returncode}: {(words.strip().splitlines() or [''])[-1][:200]}"
    if kind == "mismatch":
        return process.returncode == 1 and bool(DISAGREES.search(words)), said
    return process.returncode != 0 and kind != "hang", said
