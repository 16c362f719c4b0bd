"""The process that executes cases: plain run, oracles, coverage. Started by `executor`."""

from __future__ import annotations

import ctypes
import faulthandler
import json
import mmap
import os
import pickle
import random
import resource
import signal
import struct
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from truekernel.fuzz.library import Library, Ran
from truekernel.fuzz.policy import CoverageSource
from truekernel.fuzz.records import Outcome, TestCase, document
from truekernel.fuzz.refusals import classify

if TYPE_CHECKING:
    from truekernel.fuzz.executor import Limits

PAGE = 4096
HEADER = "<ii"
"""Of the shared page: what is running (0 the plain run, then oracles by their place), and which call."""
MOST_TEXT = 2000
SLOW_SECONDS = 0.01
"""Plain runs that take longer are judged less often, in proportion."""


def execute(
    library: Library,
    limits: Limits,
    coverage: Sequence[CoverageSource],
    seen: Mapping[str, Sequence[int | str]],
    requests: int,
    replies: int,
    page: mmap.mmap,
    errors: int,
) -> None:
    """Serve requests until the pipe closes."""
    faulthandler.disable()
    _end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 0)
    os.dup2(quiet, 1)
    os.dup2(errors, 2)
    library.start()
    for source in coverage:
        source.start()
        source.forget(seen[source.kind])
    _bound_memory(limits.memory)
    server = _Server(library, limits, coverage, page)
    while True:
        head = _read(requests, 4)
        if len(head) < 4:
            return
        case, names, seed, share = pickle.loads(_read(requests, struct.unpack("<I", head)[0]))
        reply = json.dumps(server.serve(case, names, seed, share)).encode() + b"\n"
        while reply:
            reply = reply[os.write(replies, reply) :]


def _read(handle: int, count: int) -> bytes:
    parts = b""
    while len(parts) < count:
        part = os.read(handle, count - len(parts))
        if not part:
            break
        parts += part
    return parts


def _end_with_parent() -> None:
    """A case that never ends must not outlive a parent that was killed (prctl's PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _bound_memory(extra: int) -> None:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        pages = int(file.read().split()[0])
    limit = pages * resource.getpagesize() + extra
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


class _Server:
    def __init__(self, library: Library, limits: Limits, coverage: Sequence[CoverageSource], page: mmap.mmap) -> None:
        self.library, self.limits, self.coverage, self.page = library, limits, coverage, page
        self.oracles = {oracle.name: oracle for oracle in library.oracles()}
        self.operators = {operator.name: operator for operator in library.operators()}

    def serve(self, case: TestCase, names: Sequence[str], seed: int, share: float) -> dict[str, Any]:
        """The reply to a request."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self._at(0, 0)
        for source in self.coverage:
            source.begin()
        outcome, ran = self._plain(case)
        new = {source.kind: list(source.end()) for source in self.coverage}
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) << 10
        if ran is not None and grown > self.limits.blow_up + 64 * self.library.footprint(ran):
            outcome = Outcome(
                "memory",
                message=f"{grown >> 20} MiB for {self.library.footprint(ran)} bytes of inputs and outputs",
                peak_bytes=grown,
            )
        outcomes, asked, calls = [outcome], [], len(case.calls)
        if ran is not None and outcome.kind == "valid":
            chance = random.Random(seed)
            interesting = any(new.values())
            watching = [source for source in self.coverage if source.judging]
            slow = max(ran.seconds / SLOW_SECONDS, 1.0)
            for place, name in enumerate(names):
                oracle = self.oracles[name]
                if share < 1.0 and not interesting and chance.random() > share / max(oracle.cost / 4, 1.0) / slow:
                    continue
                if not oracle.applies(case, ran.operators):
                    continue
                self._at(place + 1, 0)
                asked.append(name)
                calls += round(oracle.cost)
                for source in watching:
                    source.begin()
                found = self._judged(oracle, ran)
                for source in watching:
                    new[source.kind] += source.end()
                if found is not None:
                    outcomes.append(found)
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        return {
            "outcomes": [document(one) for one in outcomes],
            "new": new,
            "calls": calls,
            "asked": asked,
            "end": outcome.kind == "memory" or rss > (5 << 29),
        }

    def _at(self, stage: int, call: int) -> None:
        struct.pack_into(HEADER, self.page, 0, stage, call)

    def _plain(self, case: TestCase) -> tuple[Outcome, Ran | None]:
        started = time.perf_counter()
        results: list[Any] = []
        leaves: list[list[Any]] = []
        number = 0
        try:
            for number, call in enumerate(case.calls):
                self._at(0, number)
                bound = self.library.bind(call, results, leaves)
                for _ in range(call.repeat):
                    result = bound()
                results.append(result)
                leaves.append(bound.leaves)
        except (MemoryError, RecursionError) as error:
            return Outcome("refused", call=number, error=type(error).__name__, message=str(error)[:MOST_TEXT]), None
        except Exception as error:
            return self._refusal(error, case, number), None
        seconds = time.perf_counter() - started
        operators = tuple(self.operators[call.operator] for call in case.calls)
        again = partial(self.library.bind, case.calls[0], (), ())
        return Outcome("valid", seconds=seconds), Ran(case, operators, tuple(results), seconds, again)

    def _refusal(self, error: Exception, case: TestCase, number: int) -> Outcome:
        text = str(error)
        name = type(error).__name__
        judgement = classify(name, text, case.calls[number].operator)
        # An IndexError or the like that comes from deep inside still tells the caller of an argument, if badly: no failure.
        defect = judgement.kind == "defect" and not isinstance(error, IndexError | ValueError | TypeError)
        kind = "assert" if defect else "refused"
        return Outcome(kind, call=number, error=name, message=text[:MOST_TEXT], location=self.library.location(error))  # type: ignore[arg-type]

    def _judged(self, oracle: Any, ran: Ran) -> Outcome | None:
        try:
            found: Outcome | None = oracle.judge(ran)
        except Exception as error:
            if "INTERNAL ASSERT" in str(error):
                return Outcome(
                    "assert",
                    oracle.name,
                    error=type(error).__name__,
                    message=str(error)[:MOST_TEXT],
                    location=self.library.location(error),
                )
            return None
        return found
