"""The parent's side of a timing process: fresh, with an environment of its own, asked in turn, ended when it hangs."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from truekernel.errors import MachineError

Kind = Literal["device_timer", "torch_timer"]
KEPT = (
    "PATH",
    "HOME",
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_HOME",
    "CUDA_PATH",
    "PYTHONPATH",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "LANG",
)
"""Variables that a timing process gets; all others could change what is timed."""
START_SECONDS = 600.0
"""torch.compile may try hundreds of kernels."""
ANSWER_SECONDS = 300.0


class TimerError(MachineError):
    """A timing process ended, hung, or said that it can't."""


class Timer:
    """One process. Use as a context manager; `hello` holds what it said when it was ready. Raises TimerError."""

    def __init__(self, kind: Kind, folder: Path) -> None:
        self.folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"truekernel.judge.bench.{kind}", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in KEPT if name in os.environ},
            bufsize=0,
        )
        self._buffer = b""
        self.hello: dict[str, Any] = {}

    def ready(self) -> Timer:
        """Wait until it can be asked; processes that were started together come up together."""
        if not self.hello:
            self.hello = self._answer(START_SECONDS)
        return self

    def __enter__(self) -> Timer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def time(self, calls: int, repeats: int, *, rotating: bool = True) -> tuple[list[float], list[float]]:
        """Seconds a call, `repeats` times: by the device's clock, and by the process's."""
        said = self.ask({"time": calls, "rotating": rotating, "repeats": repeats})
        return said["device"], said["wall"]

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request."""
        self.ready()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
        except OSError:
            raise TimerError(f"a timing process ended with {self._process.wait()}: nothing was decided") from None
        return self._answer(ANSWER_SECONDS)

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._process.stdout], [], [], seconds)
            if not ready:
                raise TimerError(f"a timing process did not answer within {seconds:g} s: nothing was decided")
            part = os.read(self._process.stdout.fileno(), 1 << 16)
            if not part:
                raise TimerError(f"a timing process ended with {self._process.wait()}: nothing was decided")
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            said: dict[str, Any] = json.loads(line)
        except ValueError:
            raise TimerError("a timing process said something that is no answer") from None
        if "error" in said:
            raise TimerError(f"a timing process can't go on: {said['error']}")
        return said
