"""The process that runs a user's problem files: `python -m truekernel.corpus.kernelbench.probe`.

It reads one JSON document from standard input, {"paths": [...], "seconds": limit of each file, "bytes": limit of its memory, "jobs": how many at once}, and writes one line with an
`Answer` for each file as it is done. Each file runs in a child of its own that is killed, with all that it started, when its time is over; PyTorch is loaded once.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path

import torch

from truekernel.corpus.kernelbench.description import Answer
from truekernel.corpus.kernelbench.observing import describe
from truekernel.corpus.kernelbench.recording import Recorder


def main() -> int:
    """Answer the request on standard input."""
    request = json.load(sys.stdin)
    _warm_up()
    waiting = list(request["paths"])[::-1]
    running: dict[int, tuple[int, str, float, bytearray]] = {}
    while waiting or running:
        while waiting and len(running) < request["jobs"]:
            path = waiting.pop()
            end, pid = _start(path, request["seconds"], request["bytes"])
            running[end] = (pid, path, time.monotonic() + request["seconds"], bytearray())
        soonest = min(deadline for _, _, deadline, _ in running.values())
        ready, _, _ = select.select(list(running), [], [], max(0.0, soonest - time.monotonic()))
        for end in ready:
            part = os.read(end, 1 << 16)
            running[end][3].extend(part)
            if not part:
                _finish(end, *running.pop(end), request["seconds"])
        for end in [e for e, (_, _, deadline, _) in running.items() if deadline <= time.monotonic()]:
            pid, path, _, _ = running.pop(end)
            _finish(end, pid, path, 0.0, bytearray(), request["seconds"], late=True)
    return 0


def _warm_up() -> None:
    """Load what the first tensor without data loads, so that the children share it."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    logging.getLogger("torch").setLevel(logging.CRITICAL)
    torch.set_num_threads(1)
    with FakeTensorMode(allow_non_fake_inputs=True), Recorder():
        torch.nn.Linear(2, 2)(torch.rand(2, 2))
    gc.collect()
    gc.freeze()


def _start(path: str, seconds: float, most_bytes: int) -> tuple[int, int]:
    """Start a child for a file; the reading end of its answer, and its process id."""
    end, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return end, pid
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + most_bytes, used + most_bytes))
        answer = _answer(path)
        with os.fdopen(write, "wb") as pipe:
            pipe.write(answer.model_dump_json().encode())
    finally:
        os._exit(0)


def _answer(path: str) -> Answer:
    try:
        return Answer(path=path, found=describe(Path(path).read_text(encoding="utf-8"), path))
    except MemoryError:
        return Answer(path=path, refused="it asks for more memory than it may have while only shapes are needed")
    except BaseException as error:
        text = " ".join(str(error).split())
        kind = type(error).__name__
        return Answer(path=path, refused=text if kind == "NotAProblemError" else f"it raises {kind}: {text}"[:300])


def _finish(
    end: int, pid: int, path: str, _deadline: float, got: bytearray, seconds: float, *, late: bool = False
) -> None:
    os.close(end)
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    try:
        if late:
            raise ValueError(f"it did not end within {seconds:g} seconds")
        if not got:
            raise ValueError(f"its process ended without an answer (status {os.waitstatus_to_exitcode(status)})")
        answer = Answer.model_validate_json(bytes(got))
    except ValueError as error:
        answer = Answer(path=path, refused=" ".join(str(error).split())[:300])
    print(answer.model_dump_json(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
