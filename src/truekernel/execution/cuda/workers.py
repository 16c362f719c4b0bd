"""The workers of one server: the one at work, and a spare that has its context ready when that one ends."""

from __future__ import annotations

import atexit
import os
import threading
from collections import Counter

from truekernel.errors import MachineError
from truekernel.execution.cuda.health import WAIT_SECONDS, Watch
from truekernel.execution.cuda.support import support_code
from truekernel.execution.cuda.worker_process import WorkerDiedError, WorkerProcess


class Idle:
    """Workers that a closed server has left for the next one of this process: a context takes a tenth of a second or more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers: list[WorkerProcess] = []
        self._owner = os.getpid()
        atexit.register(self.end)

    def give(self, worker: WorkerProcess) -> None:
        """Keep a worker, emptied; one that does not answer any more ends."""
        try:
            worker.empty()
        except WorkerDiedError:
            worker.end()
            return
        with self._lock:
            self._workers.append(worker)

    def take(self, device: int) -> WorkerProcess | None:
        """A worker on that device, None when none is kept."""
        with self._lock:
            if self._owner != os.getpid():  # a fork: these processes are the parent's
                self._workers, self._owner = [], os.getpid()
            for number, worker in enumerate(self._workers):
                if worker.device == device:
                    return self._workers.pop(number)
        return None

    def end(self) -> None:
        """End them all."""
        with self._lock:
            workers, self._workers = self._workers, []
        for worker in workers if self._owner == os.getpid() else ():
            worker.end()


IDLE = Idle()


class Watching:
    """What looks whether this process' workers are gone. Asked for once: the answer can take long while others make contexts."""

    def __init__(self) -> None:
        self._owner = 0
        self._watch: Watch | None = None

    def by(self, pid: int) -> Watch | None:
        """A watch that shows such processes as the worker `pid`; None where it does not."""
        if self._owner != os.getpid():
            found = Watch()
            self._owner, self._watch = os.getpid(), found if pid in found.pids() else None
        return self._watch


WATCHING = Watching()


class Workers:
    """Hands out a worker whose GPU has just proven that it computes. `keep`: leave good workers to the next server of this process."""

    def __init__(self, device: int, *, keep: bool = False) -> None:
        self._device, self._keep = device, keep
        self._worker: WorkerProcess | None = None
        self._spare: WorkerProcess | None = None
        self._watch: Watch | None = None
        self._ending: list[threading.Thread] = []
        self._remaining: list[int] = []
        self.started = 0
        """Workers that were put to work."""
        self.ended: Counter[str] = Counter()
        """Workers that had to end, by what they ended of."""
        self.name = self._arch = ""
        """The GPU's."""

    @property
    def working(self) -> WorkerProcess | None:
        """The worker at work, if there is one."""
        return self._worker

    def prepare(self) -> None:
        """Have a worker start while this process does something else."""
        if self._worker is None and self._spare is None:
            self._spare = self._new()

    def ready(self) -> WorkerProcess:
        """The worker at work, else the spare, else a new one. Raises GpuMissingError, MachineError."""
        if self._remaining:
            raise MachineError(
                f"the GPU still lists process {self._remaining[0]} {WAIT_SECONDS:g} s after it was killed: restart the machine"
            )
        if self._worker is None:
            worker, self._spare = self._spare or self._new(), None
            if self.started:
                self._spare = self._new()
            worker.open(support_code)
            self._worker = worker
            self.started += 1
            self.name, self._arch = worker.name, worker.arch
            self._watch = WATCHING.by(worker.pid)
        return self._worker

    def _new(self) -> WorkerProcess:
        support = support_code(self._arch) if self._arch else None
        return (IDLE.take(self._device) if self._keep else None) or WorkerProcess(self._device, support)

    def retire(self, why: str) -> None:
        """Kill the worker at work, for a reason; `ready` raises MachineError when the GPU does not let go of it in time.

        Where the management library shows no processes, the kill itself and the probe of the next worker are the proof.
        """
        worker, self._worker = self._worker, None
        if worker is None:
            return
        self.ended[why] += 1
        worker.kill()
        if self._spare is None:
            self._spare = self._new()
        self._ending = [thread for thread in self._ending if thread.is_alive()]
        self._ending.append(threading.Thread(target=self._end, args=(worker,), daemon=True))
        self._ending[-1].start()

    def _end(self, worker: WorkerProcess) -> None:
        worker.end()
        if self._watch is not None and not self._watch.gone(worker.pid):
            self._remaining.append(worker.pid)

    def settle(self) -> None:
        """Wait until the memory of all that were killed is back."""
        for thread in self._ending:
            thread.join()
        self._ending = []

    def close(self) -> None:
        """End all processes, or leave them to the next server."""
        for worker in (self._worker, self._spare):
            if worker is not None and self._keep:
                IDLE.give(worker)
            elif worker is not None:
                worker.end()
        self._worker = self._spare = None
        self.settle()
