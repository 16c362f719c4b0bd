"""Runs cases in a forked process that may die: what it says, or what its end means.

One process executes many cases, since a fork costs more than most calls. It is forked from this one, which has the library imported and never calls it. It writes
where it stands into a page of shared memory, so that a death is blamed on the right call and oracle. Time is that of its processor: a machine that is
busy, or stopped, makes no hang.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import pickle
import select
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truekernel.errors import MachineError
from truekernel.fuzz.executing import HEADER, PAGE, execute
from truekernel.fuzz.library import Library
from truekernel.fuzz.policy import CoverageSource
from truekernel.fuzz.records import Outcome, TestCase, parsed

CLOCK = os.sysconf("SC_CLK_TCK")
SLICE = 0.05
FAULT = 70
"""Exit code of a process that failed by our own fault."""
KEPT_CASES = 500
"""Cases after which what a process wrote to standard error is thrown away."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one case. `seconds`: of processor time for the plain run and for each oracle. `idle_seconds`: of waiting while it uses no processor: a deadlock.
    `memory`: bytes of address space beyond what the process has when it starts. `blow_up`: bytes of memory beyond 64 times inputs and outputs."""

    seconds: float = 3.0
    idle_seconds: float = 10.0
    memory: int = 6 << 30
    blow_up: int = 768 << 20
    recycle: int = 20_000
    """Cases after which the process is replaced."""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of one case. `outcomes`: the plain run's first, then those of oracles that found something. `new`: what coverage sources saw for the first time, by kind."""

    outcomes: tuple[Outcome, ...]
    new: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)
    calls: int = 0
    """Calls of operators made, by the plain run and the oracles together."""
    seconds: float = 0.0
    asked: tuple[str, ...] = ()
    """Oracles that were asked."""
    stack: str = ""
    """What the process wrote to standard error before it died."""

    @property
    def worst(self) -> Outcome:
        """The outcome that matters most: a failure if there is one, else the plain run's."""
        return next((outcome for outcome in self.outcomes if outcome.failed), self.outcomes[0])


class Executor:
    """Owns the process. `oracles`: names of those that may be asked; `coverage`: sources, made in this process. `fresh`: a new process for every case."""

    def __init__(
        self,
        library: Library,
        *,
        limits: Limits | None = None,
        oracles: Sequence[str] = (),
        coverage: Sequence[CoverageSource] = (),
        fresh: bool = False,
    ) -> None:
        self.library, self.limits = library, limits or Limits()
        self.oracles, self.coverage, self.fresh = tuple(oracles), tuple(coverage), fresh
        self.starts = 0
        self._seen: dict[str, list[int | str]] = {source.kind: [] for source in self.coverage}
        self._child = 0
        self._served = 0
        self._spent = 0.0
        self._asked: tuple[str, ...] = ()
        self._page = mmap.mmap(-1, PAGE)
        self._errors = tempfile.TemporaryFile("a+b", prefix="truekernel-fuzz-")  # noqa: SIM115 appended to, so that it can be cut while the child writes

    def run(self, case: TestCase, oracles: Sequence[str] | None = None, *, seed: int = 0, share: float = 1.0) -> Report:
        """Execute a case and ask `oracles` (default: all), each with probability `share` unless the case reached something new. Raises MachineError when no process can be made."""
        if self._child and (self.fresh or self._served >= self.limits.recycle):
            self.stop()
        if not self._child:
            self._start()
        self._served += 1
        if not self._served % KEPT_CASES:
            self._errors.truncate(0)
        started = time.perf_counter()
        names = self.oracles if oracles is None else tuple(oracles)
        self._asked = names
        request = pickle.dumps((case, names, seed, share))
        try:
            os.write(self._requests, struct.pack("<I", len(request)) + request)
            answer = self._answer()
        except BrokenPipeError:
            answer = None
        seconds = time.perf_counter() - started
        if isinstance(answer, dict):
            new = {kind: tuple(items) for kind, items in answer["new"].items()}
            for kind, items in new.items():
                self._seen[kind] += items
            outcomes = tuple(parsed(outcome) for outcome in answer["outcomes"])
            if answer["end"]:
                self.stop()
            return Report(outcomes, new, answer["calls"], seconds, tuple(answer["asked"]))
        return self._death(answer, seconds)

    def _start(self) -> None:
        down, up = os.pipe(), os.pipe()
        self._errors.truncate(0)
        try:
            child = os.fork()
        except OSError as error:
            raise MachineError(f"no process for test cases can be made: {error.strerror}") from error
        if not child:
            try:
                os.close(down[1])
                os.close(up[0])
                execute(
                    self.library,
                    self.limits,
                    self.coverage,
                    self._seen,
                    down[0],
                    up[1],
                    self._page,
                    self._errors.fileno(),
                )
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(FAULT)
        os.close(down[0])
        os.close(up[1])
        self._child, self._requests, self._replies = child, down[1], up[0]
        self._served = 0
        self.starts += 1
        self._buffer = b""

    def _answer(self) -> dict[str, Any] | str | None:
        """The child's reply; "hang" when it ran too long, None when it died."""
        idle = 0.0
        stage, used = self._stage(), self._processor()
        last = used
        while True:
            ready, _, _ = select.select([self._replies], [], [], SLICE)
            if ready:
                part = os.read(self._replies, 1 << 16)
                if not part:
                    return None
                self._buffer += part
                if self._buffer.endswith(b"\n"):
                    line, self._buffer = self._buffer, b""
                    try:
                        answer = json.loads(line)
                    except ValueError:
                        return None
                    return answer if isinstance(answer, dict) else None
                continue
            now, processor = self._stage(), self._processor()
            if now != stage:
                stage, used, idle = now, processor, 0.0
            elif processor - used > self.limits.seconds * self._patience(now[0]):
                return "hang"
            else:
                idle = idle + SLICE if processor == last and self._sleeps() else 0.0
                if idle > self.limits.idle_seconds:
                    return "hang"
            last = processor

    def _patience(self, stage: int) -> float:
        """How many times the limit the running oracle may take."""
        if not 0 < stage <= len(self._asked):
            return 1.0
        return next(
            (oracle.patience for oracle in self.library.oracles() if oracle.name == self._asked[stage - 1]), 1.0
        )

    def _stage(self) -> tuple[int, int]:
        stage, call = struct.unpack_from(HEADER, self._page, 0)
        return stage, call

    def _processor(self) -> float:
        """Seconds of processor time that the child has used."""
        fields = self._status()
        return (int(fields[11]) + int(fields[12])) / CLOCK if len(fields) > 12 else 0.0

    def _sleeps(self) -> bool:
        """Whether the child waits for something, rather than for a processor or to be continued."""
        return self._status()[:1] in (["S"], ["D"])

    def _status(self) -> list[str]:
        try:
            text = Path(f"/proc/{self._child}/stat").read_text(encoding="ascii", errors="replace")
            return text.rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            return []

    def _death(self, answer: str | None, seconds: float) -> Report:
        """What a process that hangs or died means."""
        stage, call = self._stage()
        names = ("execution", *self._asked)
        oracle = names[stage] if stage < len(names) else "execution"
        if answer == "hang":
            os.kill(self._child, signal.SIGKILL)
        status = self._reap()
        self._errors.seek(0)
        stack = self._errors.read().decode(errors="replace").replace("\0", "")[-20_000:]
        if answer == "hang":
            outcome = Outcome(
                "hang",
                oracle,
                call,
                "timeout",
                f"no end after {self.limits.seconds:g} s of processor time",
                seconds=seconds,
            )
        elif os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            kind = "memory" if name == "SIGKILL" else "crash"
            outcome = Outcome(kind, oracle, call, name, _last_words(stack), seconds=seconds)  # type: ignore[arg-type]
        else:
            outcome = Outcome(
                "crash", oracle, call, f"exit {os.waitstatus_to_exitcode(status)}", _last_words(stack), seconds=seconds
            )
        new = {source.kind: tuple(source.end()) for source in self.coverage}
        for kind, items in new.items():
            self._seen[kind] += items
        plain, asked = ((), ()) if oracle == "execution" else ((Outcome("valid"),), (oracle,))
        return Report((*plain, outcome), new, calls=1, seconds=seconds, asked=asked, stack=stack)

    def _reap(self) -> int:
        self._spent += self._processor()
        status = os.waitpid(self._child, 0)[1]
        os.close(self._requests)
        os.close(self._replies)
        self._child = 0
        return status

    def processor_seconds(self) -> float:
        """Processor time that all processes have used."""
        return self._spent + (self._processor() if self._child else 0.0)

    def close(self) -> None:
        """End the process for good."""
        self.stop()
        self._errors.close()
        self._page.close()

    def stop(self) -> None:
        """End the process; the next case starts another."""
        if self._child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)
            self._reap()

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _last_words(stack: str) -> str:
    """The line that says why a process ended, where it wrote one."""
    for line in stack.splitlines():
        if any(
            word in line
            for word in (
                "terminate called",
                "what():",
                "corrupted",
                "free()",
                "malloc",
                "double free",
                "Assertion",
                "stack smashing",
                "munmap_chunk",
            )
        ):
            return line.strip()[:300]
    return ""
