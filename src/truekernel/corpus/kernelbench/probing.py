"""Ask what problem files hold, without running them in this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from truekernel.corpus.kernelbench.description import Answer
from truekernel.errors import MachineError

SECONDS = 120.0
"""Most time for one file; the slowest of the published ones takes a fifth of it on a core of its own."""
MOST_BYTES = 6 << 30
"""Most memory for one file, beyond what PyTorch takes."""


def probe(paths: Sequence[Path], *, seconds: float = SECONDS, most_bytes: int = MOST_BYTES) -> dict[Path, Answer]:
    """An answer for each file: a description, or one line that says why there is none.

    The files run in processes of their own, with a limit of time and memory each, and with tensors that have shapes and no data. Raises MachineError when that can't be started.
    """
    if not paths:
        return {}
    jobs = max(1, min(8, len(os.sched_getaffinity(0))))
    request = json.dumps(
        {"paths": [str(path) for path in paths], "seconds": seconds, "bytes": most_bytes, "jobs": jobs}
    )
    command = [sys.executable, "-P", "-m", "truekernel.corpus.kernelbench.probe"]
    done = subprocess.run(command, input=request, capture_output=True, text=True, check=False)
    answers = [Answer.model_validate_json(line) for line in done.stdout.splitlines()]
    if done.returncode or len(answers) != len(paths):
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise MachineError(f"the process that reads problem files ended early: {last}")
    return {Path(answer.path): answer for answer in answers}
