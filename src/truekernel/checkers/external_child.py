"""What runs in the process of a user's callable: it reads outputs, calls, answers. `external_process` starts it as a script and keeps it.

Messages, both ways: four bytes of length (big-endian), then a JSON object. The raw bytes of a request's tensors follow it. This file imports the standard library alone, so that
it starts with nothing of the package loaded that a user's module could disturb.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import math
import os
import resource
import select
import signal
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

LONGEST_TEXT = 200
"""Characters of a user's text that are kept."""
VERDICTS = ("accept", "reject", "undetermined")
HEAD = struct.Struct(">I")
FIRST_DESCRIPTOR = 100
"""Where the pipes lie: above those numbers that programs close or write to without looking."""
GRACE = 10.0
"""Seconds after a time limit when the process ends by itself, if nobody has ended it."""
LOOK = 5.0
"""Seconds between looks whether the parent is still there."""


def safe_text(text: str, longest: int = LONGEST_TEXT) -> str:
    """`text` on one line, without characters that can't be printed or encoded (such as lone surrogates), cut to `longest` characters."""
    line = " ".join(str(text)[: 10 * longest].split())
    shown = "".join(letter if letter.isprintable() else "?" for letter in line)
    return shown if len(shown) <= longest else shown[: longest - 3] + "..."


def said(
    function: Callable[[Any, Any], Any], reference: Any, candidate: Any, caught: type[BaseException] = Exception
) -> tuple[str, str]:
    """What a callable says of two outputs: (verdict, why). True and False, numpy's too, and a `Judgement` with a verdict are answers; `caught` and all other answers are
    undetermined, with a reason that reads on from the checker's name."""
    try:
        return _verdict(function(reference, candidate))
    except caught as error:
        return "undetermined", raised(error)


def raised(error: BaseException) -> str:
    """An exception in words: "raised KeyError: 'x'" or "called exit(1)". Never raises, whatever the exception's own methods do."""
    try:
        if isinstance(error, SystemExit):
            return safe_text(f"called exit({error.code!r})")
        name = type(error).__name__
    except BaseException:
        return "raised an exception that can't be shown"
    try:
        text = str(error)
    except BaseException:
        text = "(its text can't be shown)"
    return safe_text(f"raised {name}: {text}".rstrip(": "))


def one_or_all(tensors: Sequence[Any]) -> Any:
    """What a callable gets: the only tensor, or a tuple of them."""
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def _verdict(answer: Any) -> tuple[str, str]:
    kind = type(answer)
    if kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_")):
        return ("accept" if answer else "reject"), ""
    if (kind.__module__, kind.__name__) != ("truekernel.checkers.checker", "Judgement"):
        return "undetermined", safe_text(f"returned {kind.__name__}, not True or False")
    verdict, why = answer.verdict, answer.why
    if not isinstance(verdict, str) or verdict not in VERDICTS or not isinstance(why, str):
        return "undetermined", safe_text(f"returned a Judgement of verdict {verdict!r} and why {why!r}")
    if verdict == "undetermined":
        return verdict, safe_text(f"leaves it open: {why}".rstrip(": "))
    return str(verdict), safe_text(why)


class _Pipes:
    """The two ends that belong to this process."""

    def __init__(self, requests: int, answers: int, parent: int) -> None:
        self.requests = fcntl.fcntl(requests, fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
        self.answers = fcntl.fcntl(answers, fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
        self.parent = parent
        os.close(requests)
        os.close(answers)

    def read(self, size: int) -> bytearray:
        """`size` bytes; ends the process when the parent has gone."""
        data = bytearray(size)
        view = memoryview(data)
        while view:
            if not select.select([self.requests], [], [], LOOK)[0]:
                if os.getppid() != self.parent:
                    os._exit(0)
                continue
            count = os.readv(self.requests, [view])
            if not count:
                os._exit(0)
            view = view[count:]
        return data

    def request(self) -> dict[str, Any]:
        """The next JSON object."""
        (size,) = HEAD.unpack(self.read(HEAD.size))
        found: dict[str, Any] = json.loads(self.read(size))
        return found

    def answer(self, message: dict[str, Any]) -> None:
        """Send a JSON object, short enough to be written at once. Without a pipe to the parent there is nothing left to do but wait for the end, which it decides."""
        text = json.dumps(message).encode()
        try:
            os.write(self.answers, HEAD.pack(len(text)) + text)
        except OSError:
            signal.pause()


def _found(request: dict[str, Any]) -> Any:
    """The callable. The current directory is searched first, and from now on; what the package itself needs is loaded by then."""
    sys.path[:] = list(dict.fromkeys([str(Path.cwd()), *request["path"]]))
    found: Any = importlib.import_module(request["module"])
    for part in request["attribute"].split("."):
        found = getattr(found, part)
    return found


def _opened(pipes: _Pipes) -> Any:
    """Import the callable and say how that went; what can't be called is sent as the name of its type."""
    request = pipes.request()
    signal.setitimer(signal.ITIMER_REAL, request["seconds"] + GRACE)
    process = os.getpid()
    message: dict[str, Any] = {"call": request["call"]}
    found: Any = None
    try:
        found = _found(request)
        message |= {"opened": True} if callable(found) else {"is_a": safe_text(type(found).__name__)}
    except BaseException as error:
        message["failed"] = raised(error)
    _end_copies(process)
    pipes.answer(message)
    return found


def _tensors(pipes: _Pipes, described: list[tuple[str, list[int]]]) -> Any:
    import torch

    tensors = []
    for dtype_name, shape in described:
        dtype = getattr(torch, dtype_name)
        count = math.prod(shape)
        data = pipes.read(count * dtype.itemsize)
        flat = torch.frombuffer(data, dtype=dtype) if count else torch.empty(0, dtype=dtype)
        tensors.append(flat.reshape(shape))
    return one_or_all(tensors)


def _end_copies(process: int) -> None:
    """A copy of the process that the user's code made must not answer too."""
    if os.getpid() != process:
        os._exit(0)


def _main(requests: int, answers: int, parent: int) -> None:
    pipes = _Pipes(requests, answers, parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Where memory runs out, this process is the one to end.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    import torch

    torch.set_num_threads(1)
    function = _opened(pipes)
    process = os.getpid()
    while True:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        request = pipes.request()
        reference, candidate = (_tensors(pipes, request[side]) for side in ("reference", "candidate"))
        # The default action of this signal ends the process, should the parent end before it can.
        signal.setitimer(signal.ITIMER_REAL, request["seconds"] + GRACE)
        verdict, why = said(function, reference, candidate, BaseException)
        _end_copies(process)
        pipes.answer({"call": request["call"], "verdict": verdict, "why": why})


if __name__ == "__main__":
    _main(*(int(word) for word in sys.argv[1:4]))
