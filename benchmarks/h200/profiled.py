"""Where an audit's time goes on a GPU: the audit's work with clocks around its parts, in its own processes and in those on the GPU.

`audit.py --profile FOLDER` runs it in place of the plain work and prints the sums. Clocks nest: a part's seconds hold those of the parts within.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER = "TRUEKERNEL_PROFILE"
_rows: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
_written = 0.0


def clocked(owner: Any, name: str, title: str = "") -> None:
    """Put a clock around `owner.name`: calls, seconds, and processor seconds of the thread."""
    inner: Callable[..., Any] = getattr(owner, name)
    title = title or name

    @functools.wraps(inner)
    def outer(*args: Any, **kwargs: Any) -> Any:
        wall, cpu = time.perf_counter(), time.thread_time()
        try:
            return inner(*args, **kwargs)
        finally:
            row = _rows[title]
            row[0] += 1
            row[1] += time.perf_counter() - wall
            row[2] += time.thread_time() - cpu

    setattr(owner, name, outer)


def write(kind: str) -> None:
    """Keep what this process has found so far."""
    folder = os.environ.get(FOLDER)
    if folder:
        (Path(folder) / f"{kind}-{os.getpid()}.json").write_text(json.dumps(_rows))


def audit_problem(job: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """`truekernel.audit.worker.audit_problem` with clocks."""
    from truekernel.audit import worker

    begun = time.perf_counter()
    if not _rows:
        _clock_parent()
    yield from worker.audit_problem(job)
    row = _rows["job"]
    row[0] += 1
    row[1] += time.perf_counter() - begun
    _rows["cpu of process"] = [1, 0.0, time.process_time()]
    write("parent")


def _clock_parent() -> None:
    from truekernel import mutation
    from truekernel.audit import builds, setup, trials, worker
    from truekernel.execution.cuda import compilers, library, requests, server, worker_process, workers
    from truekernel.trial import stage

    for owner, names in (
        (worker, ("set_up", "run_chunk")),
        (mutation, ("mutants",)),
        (setup, ("_cases", "_honest", "_built", "_spreads", "case_gates", "vacuous_pairs", "_eager")),
        (builds, ("plans_of", "alone", "drop")),
        (trials, ("_run", "_with_first_witness", "_repeated", "_kills", "_search", "_survivor", "_shown_again", "ask")),
        (stage.Stage, ("_prepare", "execute", "outputs")),
        (library.Library, ("code_hash",)),
        (server.Server, ("run", "_sound", "_shared", "_left_sound", "forget")),
        (requests.Attempt, ("alone",)),
        (workers.Workers, ("ready", "retire", "_new", "close")),
        (worker_process.WorkerProcess, ("open", "hold", "load", "unload", "run", "drop")),
        (compilers.CompileProcess, ("compile",)),
    ):
        for name in names:
            clocked(owner, name, f"{getattr(owner, '__name__', owner).rpartition('.')[2]}.{name}")
    _count_voids(requests.Attempt, server.Server)
    start = worker_process.start_module

    def start_clocked(module: str, **more: Any) -> Any:
        return start("profiled" if module.endswith("cuda.worker") else module, **more)

    worker_process.start_module = start_clocked


def _count_voids(attempt: Any, server: Any) -> None:
    """Count, by reason, what makes a request void."""
    shared, sound = attempt.shared, server._sound

    def shared_counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        late = len(self.late)
        try:
            found = shared(self, *args, **kwargs)
        except Exception as error:
            _rows[f"VOID {type(error).__name__} {str(error)[:60]}"][0] += 1
            raise
        if found is None:
            _rows[f"VOID {'late' if len(self.late) > late else 'suspicious or fatal'}"][0] += 1
        elif found[1]:
            _rows["VOID the rest, after a fault"][0] += 1
        for answer in found[0].values() if found else ():
            if answer.status != "ok":
                _rows[f"ANSWER {answer.status} {answer.code}"][0] += 1
        return found

    def sound_counted(self: Any, worker: Any) -> Any:
        found = sound(self, worker)
        if not found:
            _rows["VOID not sound"][0] += 1
        return found

    attempt.shared, server._sound = shared_counted, sound_counted


def _clock_worker() -> None:
    from truekernel.execution.cuda import device_memory, driver, running, worker

    for owner, names in (
        (worker.Worker, ("ask_open", "ask_support", "ask_run", "ask_contents", "ask_judge", "_begin", "_answer")),
        (running.Executor, ("begin", "finish", "_wait", "lay_out", "binding", "repair", "outputs")),
        (device_memory.Memory, ("changed", "add_blobs")),
        (driver.Driver, ("load", "unload")),
    ):
        for name in names:
            clocked(owner, name, f"gpu {name}")

    def writing() -> None:
        while True:
            time.sleep(0.3)
            write("gpu")

    threading.Thread(target=writing, daemon=True).start()
    worker.main()


def summed(folder: Path) -> dict[str, dict[str, float]]:
    """Sums over all processes."""
    total: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    for path in folder.glob("*.json"):
        for title, row in json.loads(path.read_text()).items():
            for k, value in enumerate(row):
                total[title][k] += value
    return {
        title: {"calls": int(row[0]), "seconds": round(row[1], 2), "cpu": round(row[2], 2)}
        for title, row in sorted(total.items(), key=lambda item: -item[1][1])
    }


if __name__ == "__main__":
    sys.modules["profiled"] = sys.modules["__main__"]
    _clock_worker()
