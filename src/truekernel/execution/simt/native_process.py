"""The native server as a process: its start, exact reads and writes on its pipes, its end."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from truekernel.errors import MachineError
from truekernel.execution.simt import wire

Taker = Callable[[int, int, int, bytes], None]
"""Gets type, variant, execution and payload of an answer."""
_SMALL = 1 << 14


class ProcessDiedError(Exception):
    """The native process has ended or lost its way."""


class NativeProcess:
    """One native server. Raises MachineError when it can't be started."""

    def __init__(self, program: Path) -> None:
        try:
            self._process = subprocess.Popen(
                [str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=dict(os.environ)
            )
        except OSError as error:
            raise MachineError(f"can't start {program}: {error.strerror}") from None
        try:
            self.receive()
        except ProcessDiedError:
            self.close()
            raise MachineError(f"{program} ends at its start: is there enough memory?") from None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def send(self, parts: Sequence[bytes | memoryview]) -> None:
        """Write a request. Raises ProcessDiedError."""
        assert self._process.stdin is not None
        descriptor = self._process.stdin.fileno()
        small: list[bytes | memoryview] = []
        try:
            for part in parts:
                if len(part) < _SMALL:
                    small.append(part)
                    continue
                _write(descriptor, b"".join(small))
                small = []
                _write(descriptor, part)
            _write(descriptor, b"".join(small))
        except OSError:
            raise ProcessDiedError from None

    def receive(self, take: Taker | None = None) -> None:
        """Read answers until "done", handing all others to `take`. Raises ProcessDiedError; MachineError with the process's own words."""
        assert self._process.stdout is not None
        read = _Reader(self._process.stdout.fileno())
        while True:
            magic, kind, variant, execution, size = wire.FRAME.unpack(read(wire.FRAME.size))
            if magic != wire.FRAME_MAGIC:
                raise ProcessDiedError
            payload = read(size)
            if kind == wire.DONE:
                return
            if kind == wire.ERROR:
                raise MachineError(payload.decode(errors="replace"))
            if take is not None:
                take(kind, variant, execution, payload)

    def close(self) -> None:
        """End the process, by force if it does not end by itself."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class _Reader:
    """Exact reads from a pipe, with a buffer. Nothing may be left in it at the end of an answer."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = b""

    def __call__(self, n: int) -> bytes:
        if len(self._buffer) < n:
            pieces, have = [self._buffer], len(self._buffer)
            while have < n:
                piece = os.read(self._descriptor, max(1 << 16, n - have))
                if not piece:
                    raise ProcessDiedError
                pieces.append(piece)
                have += len(piece)
            self._buffer = b"".join(pieces)
        result, self._buffer = self._buffer[:n], self._buffer[n:]
        return result


def _write(descriptor: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
