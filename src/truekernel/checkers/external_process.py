"""A user's callable in a process of its own: whatever it does, the caller gets a verdict or a reason, within a time limit.

What comes back is not trusted: an answer is a short JSON object of known fields, or the checker is broken. Once the process has ended, hangs, or has answered with something else it is
not started again. Not guarded against: code that ends other processes of the same user on purpose.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from truekernel.checkers import external_child
from truekernel.checkers.external_child import HEAD, VERDICTS, safe_text

if TYPE_CHECKING:
    import torch

CALL_SECONDS = 60.0
"""Limit of one call, in seconds of wall clock: generous, since callables compare tensors of some 100,000 elements, which takes milliseconds."""
IMPORT_SECONDS = 120.0
"""Limit of starting the process and importing the user's module, in seconds of wall clock. PyTorch is imported first, which takes seconds on a busy machine."""
LONGEST_ANSWER = 1 << 14
"""Bytes; ours have at most a few hundred."""
_SLICE = 0.2
"""Seconds between looks whether the process still runs."""
_ENDING = 2.0
"""Seconds that a process gets to end after its pipe has closed."""


class ChildBrokenError(Exception):
    """The process ended, hangs, or answers nonsense; the text reads on from the checker's name."""


class CallableProcess:
    """A running process with one callable. Raises ChildBrokenError when the callable can't be imported; ends when this object goes, or its process."""

    def __init__(
        self, module: str, attribute: str, *, call_seconds: float = CALL_SECONDS, import_seconds: float = IMPORT_SECONDS
    ) -> None:
        self.call_seconds = call_seconds
        self.broken = ""
        self._call = 0
        child_requests, self._requests = os.pipe()
        self._answers, child_answers = os.pipe()
        try:
            # Without -P the folder of this file would be searched for modules. Standard error would end up between lines of our own.
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", str(Path(external_child.__file__))),
                    *(str(child_requests), str(child_answers), str(os.getpid())),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(child_requests, child_answers),
                start_new_session=True,
            )
        except BaseException:
            os.close(self._requests)
            os.close(self._answers)
            raise
        finally:
            os.close(child_requests)
            os.close(child_answers)
        self.close = weakref.finalize(self, _end, os.getpid(), self._process, (self._requests, self._answers))
        os.set_blocking(self._requests, False)
        os.set_blocking(self._answers, False)
        path = [entry for entry in sys.path if isinstance(entry, str)]
        answer = self._exchange({"module": module, "attribute": attribute, "path": path}, (), import_seconds)
        if answer.get("opened") is not True:
            self.close()
            kind, failed = answer.get("is_a"), answer.get("failed")
            if isinstance(kind, str):
                raise ChildBrokenError(f"is a {safe_text(kind)}, not a function of (reference, candidate)")
            raise ChildBrokenError(safe_text(failed) if isinstance(failed, str) else _NONSENSE)

    def ask(self, reference: Sequence[torch.Tensor], candidate: Sequence[torch.Tensor]) -> tuple[str, str]:
        """(verdict, why) as `external_child.said` gives it, from tensors of any dtype and shape. Never raises for what the callable does; the first reason why the process
        broke is that of all later calls."""
        if self.broken:
            return "undetermined", self.broken
        sides = [[tensor.detach().cpu().contiguous() for tensor in side] for side in (reference, candidate)]
        header = {
            name: [_described(t) for t in side] for name, side in zip(("reference", "candidate"), sides, strict=True)
        }
        try:
            answer = self._exchange(header, [_raw(tensor) for side in sides for tensor in side], self.call_seconds)
            verdict, why = answer.get("verdict"), answer.get("why")
            if not isinstance(verdict, str) or verdict not in VERDICTS or not isinstance(why, str):
                self._break(_NONSENSE)
        except ChildBrokenError as error:
            return "undetermined", str(error)
        else:
            return verdict, safe_text(why)

    def _exchange(self, header: dict[str, Any], data: Sequence[memoryview], seconds: float) -> dict[str, Any]:
        """Send a request and return its answer. Raises ChildBrokenError, having ended the process."""
        deadline = time.monotonic() + seconds
        self._call += 1
        text = json.dumps({"call": self._call, "seconds": seconds, **header}).encode()
        try:
            if _ready(self._answers, select.POLLIN, 0.0):
                # Nothing was asked: it has ended, or writes what is no answer.
                self._break(_NONSENSE if self._some(1) else self._how_it_ended())
            for part in (memoryview(HEAD.pack(len(text)) + text), *data):
                self._write(part, deadline)
            (size,) = HEAD.unpack(self._read(HEAD.size, deadline))
            if size > LONGEST_ANSWER:
                self._break(_NONSENSE)
            answer = json.loads(self._read(size, deadline))
        except TimeoutError:
            self._break(f"did not end within {seconds:g} seconds")
        except (ValueError, RecursionError):
            self._break(_NONSENSE)
        if not isinstance(answer, dict) or answer.get("call") != self._call:
            self._break(_NONSENSE)
        return answer

    def _write(self, data: memoryview, deadline: float) -> None:
        while data:
            self._wait(self._requests, select.POLLOUT, deadline)
            try:
                data = data[os.write(self._requests, data) :]
            except BlockingIOError:
                continue
            except OSError:
                self._break(self._how_it_ended())

    def _read(self, size: int, deadline: float) -> bytes:
        data = b""
        while len(data) < size:
            self._wait(self._answers, select.POLLIN, deadline)
            part = self._some(size - len(data))
            if part == b"":
                self._break(self._how_it_ended())
            data += part or b""
        return data

    def _some(self, size: int) -> bytes | None:
        """Bytes that are there; b"" at the end, None when there are none now."""
        try:
            return os.read(self._answers, size)
        except BlockingIOError:
            return None

    def _wait(self, descriptor: int, event: int, deadline: float) -> None:
        """Until a pipe is ready. Raises TimeoutError. A process that has ended may leave copies that keep its pipes open, hence the looks."""
        while not _ready(descriptor, event, min(_SLICE, max(0.0, deadline - time.monotonic()))):
            if self._process.poll() is not None and not _ready(descriptor, event, 0.0):
                self._break(self._how_it_ended())
            if time.monotonic() >= deadline:
                raise TimeoutError

    def _how_it_ended(self) -> str:
        try:
            status = self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            return "closed the pipe of its answers"
        if status >= 0:
            return f"ended its process with exit status {status}"
        with contextlib.suppress(ValueError):
            return f"ended with signal {-status} ({signal.Signals(-status).name})"
        return f"ended with signal {-status}"

    def _break(self, why: str) -> NoReturn:
        self.broken = why
        self.close()
        raise ChildBrokenError(why)


_NONSENSE = "answered with bytes that are no answer"


def _ready(descriptor: int, event: int, seconds: float) -> bool:
    waiting = select.poll()
    waiting.register(descriptor, event)
    return bool(waiting.poll(seconds * 1000))


def _described(tensor: torch.Tensor) -> tuple[str, list[int]]:
    return str(tensor.dtype).removeprefix("torch."), list(tensor.shape)


def _raw(tensor: torch.Tensor) -> memoryview:
    """The bytes of a contiguous tensor, not copied. An empty one has none; a view of bytes needs a dimension."""
    import torch

    data: Any = tensor.reshape(-1).view(torch.uint8).numpy() if tensor.numel() else b""
    return memoryview(data)


def _end(owner: int, process: subprocess.Popen[bytes], descriptors: Sequence[int]) -> None:
    """End a process and those that it started, at once. A copy of `owner` that ends leaves it alone."""
    if os.getpid() != owner:
        return
    for descriptor in descriptors:
        os.close(descriptor)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_ENDING)
