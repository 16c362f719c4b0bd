"""A command behind walls, seen from outside: started, watched, ended."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truekernel.errors import MachineError
from truekernel.judge.walls.control_groups import Groups, make_groups
from truekernel.judge.walls.policy import Policy

RAISING_SECONDS = 30.0
"""Most time, in seconds of wall clock, until the walls are up: milliseconds on an idle machine."""
_ENDING = 10.0
_PACKAGE = str(Path(__file__).parents[3])
_START = f"import sys; sys.path.insert(0, {_PACKAGE!r}); from truekernel.judge.walls.entering import main; main()"
_OVER_MEMORY = 99


@dataclass(frozen=True, slots=True)
class Wall:
    """One wall. `detail`: what it keeps, or why it is not up."""

    name: str
    up: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. `how`: exit, signal, time, memory (over the limit) or stopped (by us); `code`: exit status or number of the signal."""

    how: str
    code: int = 0

    @property
    def good(self) -> bool:
        """Whether it ended by itself with exit status 0."""
        return self.how == "exit" and self.code == 0

    def __str__(self) -> str:
        words = {"time": "did not end in time", "memory": "took more memory than it may", "stopped": "was stopped"}
        return words.get(self.how, f"ended with {'exit status' if self.how == 'exit' else 'signal'} {self.code}")


class Confined:
    """A running command. Raises MachineError when it can't be started. Ends, with all that it started, when it is closed, when this object goes, or with its caller."""

    def __init__(self, policy: Policy, command: Sequence[str], *, keep: Sequence[int] = (), stdin: bytes = b"") -> None:
        """`command`: absolute path of a program, and arguments. `keep`: descriptors that it gets, at their numbers."""
        limits = policy.limits
        self._groups = make_groups(limits.memory, limits.processes)
        scratch = tempfile.mkdtemp(prefix="truekernel-walls-")
        Path(scratch).chmod(0o777)
        life_end, self._life = os.pipe()
        self._status, status_end = os.pipe()
        request = {
            "command": list(command),
            "environment": dict(policy.environment),
            "readable": list(dict.fromkeys(policy.readable)),
            "placed": dict(policy.placed),
            "hidden": list(policy.hidden),
            "limits": dataclasses.asdict(limits),
            "groups": [str(folder) for folder in self._groups.folders],
            "groups_limit": self._groups.limits,
            "groups_why": self._groups.why,
            "keep": list(keep),
            "without": list(policy.without),
            "life": life_end,
            "status": status_end,
            "scratch": scratch,
        }
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _START, json.dumps(request)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(life_end, status_end, *keep),
                start_new_session=True,
                env={},
                bufsize=0,
            )
        except OSError as error:
            for descriptor in (self._life, self._status):
                os.close(descriptor)
            self._groups.remove()
            raise MachineError(f"can't start a process behind walls: {error.strerror}") from None
        finally:
            os.close(life_end)
            os.close(status_end)
        self._told = b""
        self._kept = bytearray()
        drained = threading.Thread(target=_drain, args=(self._process.stdout, self._kept, limits.output), daemon=True)
        drained.start()
        self.close = weakref.finalize(
            self, _end, self._process, self._life, self._status, self._groups, scratch, drained
        )
        threading.Thread(target=_feed, args=(self._process.stdin, stdin), daemon=True).start()
        self.walls = self._raised()

    def _raised(self) -> tuple[Wall, ...]:
        message = self._line(time.monotonic() + RAISING_SECONDS)
        if message is None or "walls" not in message:
            self.close()
            why = (message or {}).get("failed") or self.output.strip().splitlines()[-1:] or "no answer"
            raise MachineError(f"the walls could not be raised: {why}")
        return tuple(
            Wall(name, bool(wall["up"]), str(wall["detail"])) for name, wall in sorted(message["walls"].items())
        )

    def _line(self, deadline: float) -> dict[str, Any] | None:
        """The next line of the status pipe; None at its end or after the deadline."""
        while b"\n" not in self._told:
            if not select.select([self._status], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return None
            part = os.read(self._status, 65536)
            if not part:
                return None
            self._told += part
        line, _, self._told = self._told.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    @property
    def output(self) -> str:
        """What it wrote to standard output and error so far, as far as it is kept."""
        return self._kept.decode(errors="replace")

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def wait(self, seconds: float) -> Ended:
        """Wait for its end, and bring it about after `seconds` of wall clock."""
        deadline = time.monotonic() + seconds
        message = self._line(deadline)
        if message is None and time.monotonic() >= deadline:
            self.close()
            return Ended("time")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDING)
        over = self._process.poll() == _OVER_MEMORY or self._groups.out_of_memory()
        if message is None or "ended" not in message or (over and message["ended"] == -signal.SIGKILL):
            self.close()
            return Ended("memory" if over else "stopped")
        code = int(message["ended"])
        self.close()
        return Ended("signal", -code) if code < 0 else Ended("exit", code)


def _drain(stream: Any, kept: bytearray, most: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        while part := stream.read(65536):
            kept += part[: max(0, most - len(kept))]
    with contextlib.suppress(OSError):
        stream.close()


def _feed(stream: Any, data: bytes) -> None:
    with contextlib.suppress(OSError, ValueError):
        if data:
            stream.write(data)
        stream.close()


def _end(
    process: subprocess.Popen[bytes], life: int, status: int, groups: Groups, scratch: str, drained: threading.Thread
) -> None:
    """End everything inside: the watcher outside sees that the pipe `life` is closed."""
    os.close(life)
    try:
        process.wait(_ENDING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    os.close(status)
    drained.join(_ENDING)
    groups.remove()
    shutil.rmtree(scratch, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that has ended."""

    ended: Ended
    output: str
    walls: tuple[Wall, ...]


def run(policy: Policy, command: Sequence[str], *, seconds: float, stdin: bytes = b"") -> Finished:
    """Run a command behind walls to its end, or for `seconds` of wall clock."""
    confined = Confined(policy, command, stdin=stdin)
    ended = confined.wait(seconds)
    return Finished(ended, confined.output, confined.walls)
