"""The workers of one server: the one at work, and a spare that has its context ready when that one ends."""

from __future__ import annotations

from truekernel.errors import MachineError
from truekernel.execution.cuda.health import WAIT_SECONDS, Watch
from truekernel.execution.cuda.support import support_code
from truekernel.execution.cuda.worker_process import WorkerProcess


class Workers:
    """Hands out a worker whose GPU has just proven that it computes."""

    def __init__(self, device: int) -> None:
        self._device = device
        self._worker: WorkerProcess | None = None
        self._spare: WorkerProcess | None = None
        self._watch: Watch | None = None
        self._listed = False
        self.started = 0
        """Workers that were put to work."""
        self.name = ""
        """The GPU's."""

    @property
    def working(self) -> WorkerProcess | None:
        """The worker at work, if there is one."""
        return self._worker

    def ready(self) -> WorkerProcess:
        """The worker at work, else the spare, else a new one. Raises GpuMissingError, MachineError."""
        if self._worker is None:
            worker, self._spare = self._spare or WorkerProcess(self._device), None
            if self.started:
                self._spare = WorkerProcess(self._device)
            worker.open(support_code)
            self._worker = worker
            self.started += 1
            self.name = worker.name
            if self._watch is None:
                self._watch = Watch()
                self._listed = worker.pid in self._watch.pids()
        return self._worker

    def retire(self) -> None:
        """Kill the worker at work and wait until the GPU no longer lists it.

        Where the management library shows no processes, the kill itself and the probe of the next worker are the proof.
        Raises MachineError when the GPU does not let go of it.
        """
        worker, self._worker = self._worker, None
        if worker is None:
            return
        if self._spare is None:
            self._spare = WorkerProcess(self._device)  # its start overlaps with the end of the other
        worker.end()
        if self._listed and self._watch is not None and not self._watch.gone(worker.pid):
            raise MachineError(
                f"the GPU still lists process {worker.pid} {WAIT_SECONDS:g} s after it was killed: restart the machine"
            )

    def close(self) -> None:
        """End all processes."""
        for worker in (self._worker, self._spare):
            if worker is not None:
                worker.end()
        self._worker = self._spare = None
