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
from truekernel.fuzz.records import Finding
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
    """Whether the script fails as the finding says: a mismatch by its assertion, a hang by not ending, anything else by any end but a good one."""
    if finding.kind in UNSHOWN or (finding.oracle != "execution" and not _judges(finding, library)):
        return True
    with tempfile.TemporaryDirectory(prefix="truekernel-fuzz-") as folder:
        path = Path(folder) / "finding.py"
        path.write_text(script(finding, library), encoding="utf-8")
        limit = HANG_SECONDS if finding.kind == "hang" else SECONDS
        process = subprocess.Popen(
            [sys.executable, str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            words = process.communicate(timeout=limit)[1].decode(errors="replace")
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return finding.kind == "hang"
    if finding.kind == "mismatch":
        return process.returncode == 1 and bool(DISAGREES.search(words))
    return process.returncode != 0 and finding.kind != "hang"
