"""Where jobs run: local worker processes that speak JSON lines with their parent.

A job is a JSON object; the work is a generator function named "package.module:function" that takes a job and yields JSON objects.
Workers end when their parent does, however it ended: their standard input closes.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from truekernel.errors import MachineError, TruekernelError

Job = Mapping[str, Any]
Message = dict[str, Any]


class Pool(Protocol):
    """Runs jobs. Messages of one job keep their order; those of different jobs interleave."""

    def run(self, work: str, jobs: Sequence[Job]) -> Iterator[tuple[int, Message]]:
        """Yield (job number, message) until all jobs have ended. Raises MachineError when a job's worker died twice."""
        ...


class LocalPool:
    """Worker processes on this machine. A job whose worker died is given once more to a fresh one; `resume(job, messages so far)` is the
    caller's concern: a job may yield again what it had yielded before."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(self, work: str, jobs: Sequence[Job]) -> Iterator[tuple[int, Message]]:
        """See `Pool.run`."""
        pending: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
        for number in range(len(jobs)):
            pending.put((number, 0))
        messages: queue.Queue[tuple[int, Message | BaseException | None]] = queue.Queue(maxsize=256)
        stop = threading.Event()
        processes: list[subprocess.Popen[str]] = []
        threads = [
            threading.Thread(target=_serve, args=(work, jobs, pending, messages, stop, processes), daemon=True)
            for _ in range(min(self.workers, len(jobs)))
        ]
        for thread in threads:
            thread.start()
        left = len(jobs)
        try:
            while left:
                number, message = messages.get()
                if message is None:
                    left -= 1
                elif isinstance(message, BaseException):
                    raise message
                else:
                    yield number, message
        finally:
            stop.set()
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            while any(thread.is_alive() for thread in threads):
                with contextlib.suppress(queue.Empty):
                    messages.get(timeout=0.05)


def _serve(
    work: str,
    jobs: Sequence[Job],
    pending: queue.SimpleQueue[tuple[int, int]],
    messages: queue.Queue[tuple[int, Message | BaseException | None]],
    stop: threading.Event,
    processes: list[subprocess.Popen[str]],
) -> None:
    """One worker's keeper: starts it, feeds it jobs, starts another when it dies."""
    process: subprocess.Popen[str] | None = None
    while not stop.is_set():
        try:
            number, attempt = pending.get_nowait()
        except queue.Empty:
            break
        if process is None or process.poll() is not None:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "truekernel.pool", work],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            processes.append(process)
        ended = _one_job(process, jobs[number], number, messages)
        if ended or stop.is_set():
            continue
        _end(process)
        if attempt:
            messages.put(
                (
                    number,
                    MachineError(
                        f"a worker died twice on the same job (exit code {process.returncode}); run the same command with --resume"
                    ),
                )
            )
            return
        pending.put((number, attempt + 1))
    if process is not None:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """Let a worker end by closing its input, and close what it wrote to."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()
    process.wait()


def _one_job(
    process: subprocess.Popen[str],
    job: Job,
    number: int,
    messages: queue.Queue[tuple[int, Message | BaseException | None]],
) -> bool:
    """Send a job and pass its messages on. False: the worker died before the job ended."""
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return False
    for line in process.stdout:
        message = json.loads(line)
        if "ended" in message:
            messages.put((number, None))
            return True
        if "failed" in message:
            failure = message["failed"]
            known = {cls.__name__: cls for cls in _all_errors(TruekernelError)}
            cls = known.get(failure["type"], MachineError)
            error = TruekernelError.__new__(cls)
            Exception.__init__(error, failure["text"])
            messages.put((number, error))
            return True
        messages.put((number, message["message"]))
    return False


def _all_errors(base: type[TruekernelError]) -> Iterator[type[TruekernelError]]:
    yield base
    for cls in base.__subclasses__():
        yield from _all_errors(cls)


def _worker(work: str) -> None:
    """Main loop of a worker process. Its standard output belongs to the protocol; what jobs print goes to standard error."""
    # Ctrl-C reaches the whole process group. The parent says what became of it and ends its workers, however often it is pressed; what they start ignores it too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    module, _, name = work.partition(":")
    function = getattr(importlib.import_module(module), name)
    for line in sys.stdin:
        try:
            for message in function(json.loads(line)):
                out.write(json.dumps({"message": message}) + "\n")
            out.write('{"ended": true}\n')
        except BrokenPipeError:
            return
        except TruekernelError as error:
            out.write(json.dumps({"failed": {"type": type(error).__name__, "text": str(error)}}) + "\n")
        except Exception as error:
            traceback.print_exc()
            out.write(
                json.dumps(
                    {
                        "failed": {
                            "type": "MachineError",
                            "text": f"{type(error).__name__}: {error} (a fault of truekernel; the traceback is above)",
                        }
                    }
                )
                + "\n"
            )


if __name__ == "__main__":
    _worker(sys.argv[1])
