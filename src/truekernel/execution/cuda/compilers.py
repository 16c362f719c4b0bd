"""Processes that compile: started when needed, kept for the next call, replaced when they hang or die."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict
from typing import IO

from truekernel.errors import MachineError, NvrtcMissingError
from truekernel.execution.cuda.nvrtc import Compiled
from truekernel.execution.cuda.options import Options
from truekernel.execution.cuda.wire import Channel, ClosedError, OverdueError

ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "1073741824"}
"""A compilation takes and gives back hundreds of megabytes: the process keeps them for the next one."""
START_SECONDS = 120.0
COMPILE_SECONDS = 60.0
"""A source that takes longer (templates can) counts as one that does not compile."""


class CompileProcess:
    """One process; its NVRTC has the version `version`."""

    def __init__(self) -> None:
        self._process = start_module("truekernel.execution.cuda.compile_process", environment=ENVIRONMENT | os.environ)
        self._channel = channel_of(self._process)
        self._version: tuple[int, int] | None = None

    @property
    def version(self) -> tuple[int, int]:
        """NVRTC's, once the process has come up. Raises NvrtcMissingError, MachineError."""
        if self._version is not None:
            return self._version
        try:
            hello, _ = self._channel.receive(START_SECONDS)
        except (ClosedError, OverdueError):
            self.end()
            raise MachineError("a compile process did not start: is there memory left?") from None
        if "error" in hello:
            self.end()
            raise NvrtcMissingError(
                f"CUDA code can't be compiled ({hello['error']}): pip install cuda-core nvidia-cuda-nvrtc nvidia-cuda-runtime"
            )
        self._version = (int(hello["version"][0]), int(hello["version"][1]))
        return self._version

    def compile(self, source: str, kernels: tuple[str, ...], options: Options) -> Compiled:
        """As `nvrtc.Nvrtc.compile`. Raises OverdueError or ClosedError when the process hangs or dies over it; it is of no use then."""
        self._channel.send({"kernels": list(kernels), "options": asdict(options)}, [source.encode()])
        answer, cubin = self._channel.receive(COMPILE_SECONDS)
        return Compiled(bytes(cubin), {str(k): str(v) for k, v in answer["symbols"].items()}, str(answer["log"]))

    def end(self) -> None:
        """End the process."""
        end_process(self._process)


class Compilers:
    """Idle compile processes of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[CompileProcess] = []
        self._version: tuple[int, int] | None = None
        self._owner = os.getpid()
        self._made = 0

    def prepare(self, count: int) -> None:
        """Have idle processes, `count` or more in all, start while this process does something else."""
        with self._lock:
            self._disown()
            missing = count - self._made
        for process in [CompileProcess() for _ in range(missing)]:
            self._made += 1
            self._give(process)

    def _disown(self) -> None:
        if self._owner != os.getpid():  # a fork: these processes are the parent's
            self._idle, self._owner, self._made = [], os.getpid(), 0

    def version(self) -> tuple[int, int]:
        """NVRTC's version. Raises NvrtcMissingError."""
        if self._version is None:
            self._give(self._take())
        assert self._version is not None
        return self._version

    def compile(self, source: str, kernels: tuple[str, ...], options: Options) -> Compiled:
        """Compile in an idle process, or in a new one."""
        process = self._take()
        try:
            compiled = process.compile(source, kernels, options)
        except OverdueError:
            process.end()
            return Compiled(b"", {}, f"the compiler did not end within {COMPILE_SECONDS:g} s")
        except ClosedError:
            process.end()
            return Compiled(b"", {}, "the compiler died")
        except BaseException:
            process.end()
            raise
        self._give(process)
        return compiled

    def _take(self) -> CompileProcess:
        with self._lock:
            self._disown()
            process = self._idle.pop() if self._idle else None
            self._made += process is None
        process = process or CompileProcess()
        self._version = process.version
        return process

    def _give(self, process: CompileProcess) -> None:
        with self._lock:
            self._idle.append(process)

    def close(self) -> None:
        """End all idle processes."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.end()


def start_module(module: str, *, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start `python -m module`, with pipes for its input and output; its standard error is ours."""
    return subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=None if environment is None else dict(environment),
    )


def channel_of(process: subprocess.Popen[bytes]) -> Channel:
    """The conversation with a process of `start_module`."""
    return Channel(_descriptor(process.stdout), _descriptor(process.stdin))


def _descriptor(stream: IO[bytes] | None) -> int:
    assert stream is not None
    return stream.fileno()


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, wait until the system has taken it back, and close its pipes."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
