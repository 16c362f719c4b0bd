"""Whether a GPU has given back what a killed process held, by NVIDIA's management library (NVML API reference manual)."""

from __future__ import annotations

import ctypes
import time
from ctypes import byref, c_int, c_uint, c_ulonglong, c_void_p

_SMALL = 7  # NVML_ERROR_INSUFFICIENT_SIZE
WAIT_SECONDS = 30.0


class _Process(ctypes.Structure):
    _fields_ = (("pid", c_uint), ("memory", c_ulonglong), ("instance", c_uint), ("compute", c_uint))


class Watch:
    """Looks at the processes of all GPUs. `usable`: NVML is there; inside some containers it shows no processes, which `sees` tells."""

    def __init__(self) -> None:
        self._library: ctypes.CDLL | None = None
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
            if library.nvmlInit_v2() == 0:
                self._library = library
        except (OSError, AttributeError):
            return

    @property
    def usable(self) -> bool:
        """Whether NVML answers."""
        return self._library is not None

    def pids(self) -> set[int]:
        """Numbers of all processes that have a context on a GPU."""
        found: set[int] = set()
        count = c_uint()
        if self._library is None or self._library.nvmlDeviceGetCount_v2(byref(count)):
            return found
        for index in range(count.value):
            device = c_void_p()
            if self._library.nvmlDeviceGetHandleByIndex_v2(c_uint(index), byref(device)) == 0:
                found |= self._pids_of(device)
        return found

    def _pids_of(self, device: c_void_p) -> set[int]:
        assert self._library is not None
        size = 64
        while True:
            processes = (_Process * size)()
            count = c_uint(size)
            status = c_int(self._library.nvmlDeviceGetComputeRunningProcesses_v3(device, byref(count), processes)).value
            if status == _SMALL:
                size = count.value * 2
                continue
            return {p.pid for p in processes[: count.value]} if status == 0 else set()

    def gone(self, pid: int, *, seconds: float = WAIT_SECONDS) -> bool:
        """Wait until no GPU lists the process any more. False when it still does after `seconds`."""
        deadline = time.monotonic() + seconds
        while pid in self.pids():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True
