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
_stacks: dict[str, float] = defaultdict(float)
_last: list[Any] = []
SAMPLED_EVERY = 0.02
DEPTH = 4


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
        document = {"rows": dict(_rows), "stacks": dict(_stacks), "last": _last}
        partial = Path(folder) / f".{kind}-{os.getpid()}"
        partial.write_text(json.dumps(document))
        partial.rename(Path(folder) / f"{kind}-{os.getpid()}.json")


def _sample(kind: str) -> None:
    """Look at the main thread's stack again and again, and write what was found."""
    main = threading.main_thread().ident
    written = 0.0
    while True:
        time.sleep(SAMPLED_EVERY)
        frame = sys._current_frames().get(main or 0)
        names = []
        while frame is not None and len(names) < DEPTH:
            if "truekernel" in frame.f_code.co_filename or not names:
                names.append(f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}:{frame.f_lineno}")
            frame = frame.f_back
        stack = " < ".join(names)
        _stacks[stack] += SAMPLED_EVERY
        _last[:] = [time.time(), stack]
        if time.monotonic() - written > 0.5:
            written = time.monotonic()
            write(kind)


def audit_problem(job: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """`truekernel.audit.worker.audit_problem` with clocks."""
    from truekernel.audit import worker

    begun = time.perf_counter()
    begin()
    yield from worker.audit_problem(job)
    row = _rows["job"]
    row[0] += 1
    row[1] += time.perf_counter() - begun
    _rows["cpu of process"] = [1, 0.0, time.process_time()]
    write("parent")


def begin() -> None:
    """Put the clocks around this process' work, once."""
    if not _rows:
        _clock_parent()
        threading.Thread(target=_sample, args=("parent",), daemon=True).start()
    _rows["process"] = [1, 0.0, 0.0]


def reset() -> None:
    """Forget what was found so far."""
    _rows.clear()
    _stacks.clear()


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
        (
            trials,
            ("_run", "_suites_and_first_witness", "_repeated", "_kills", "_search", "_survivor", "_shown_again", "ask"),
        ),
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
        if self.verify:
            _rows[f"VOID sentinel: {'changed' if self.changed else 'other' if found is None else 'ran'}"][0] += 1
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

    threading.Thread(target=_sample, args=("gpu",), daemon=True).start()
    worker.main()


def show(folder: Path, most: int = 45) -> None:
    """Print sums over all processes: clocks, then where stacks were seen, then where each process was last."""
    clocks: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    stacks: dict[str, float] = defaultdict(float)
    lasts = []
    for path in folder.glob("*.json"):
        document = json.loads(path.read_text())
        for title, row in document["rows"].items():
            clocks[title] = [total + value for total, value in zip(clocks[title], row, strict=True)]
        for stack, seconds in document["stacks"].items():
            stacks[f"{path.name[:3]} {stack}"] += seconds
        if document["last"]:
            lasts.append((*document["last"], path.stem))
    for title, row in sorted(clocks.items(), key=lambda item: -item[1][1])[:most]:
        print(f"{title:40} {int(row[0]):8} {row[1]:9.2f} s {row[2]:9.2f} cpu")
    for title, row in clocks.items():
        if title.startswith(("VOID", "ANSWER")):
            print(f"{title:60} {int(row[0])}")
    for stack, seconds in sorted(stacks.items(), key=lambda item: -item[1])[:most]:
        print(f"{seconds:8.1f} {stack}")
    for at, stack, name in sorted(lasts)[-6:]:
        print(f"{at:.1f} {name} {stack}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        show(Path(sys.argv[1]))
        sys.exit()
    sys.modules["profiled"] = sys.modules["__main__"]
    _clock_worker()
