"""Coverage source `lines`: Python lines of the compiler (`torch._inductor`, `torch._dynamo`) and of decompositions."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from truekernel.errors import BadInputError
from truekernel.fuzz.coverage.memory import SeenLog

PACKAGES = ("torch._inductor", "torch._dynamo", "torch._decomp", "torch._refs")

Tracer = Callable[[FrameType, str, Any], Any]


class PythonLines:
    """Lines run for the first time, as "torch._decomp.decompositions:123". A `policy.CoverageSource`.

    Between `begin` and `end` each Python call costs about a microsecond, and each line of `packages` that is not exhausted about as much. A function whose
    lines have all been seen is no longer traced. Only the thread that calls `begin` is watched, and no process that the compiler starts.
    """

    kind = "lines"
    judging = True

    def __init__(self, packages: tuple[str, ...] = PACKAGES) -> None:
        """`packages`: modules or packages of Python source. Raises BadInputError for one that can't be found."""
        self._files: dict[str, tuple[int, str]] = {}
        self._starts: list[tuple[int, str]] = []
        self._lines = 0
        for package in packages:
            for module, path in _modules(package):
                if str(path) not in self._files:
                    self._files[str(path)] = (self._lines, module)
                    self._starts.append((self._lines, module))
                    self._lines += path.read_bytes().count(b"\n") + 2
        self._log = SeenLog(self._lines)
        self._tracers: dict[CodeType, Tracer | None] = {}
        self._outer: Any = None

    def start(self) -> None:
        """See `policy.CoverageSource.start`."""

    def forget(self, seen: Sequence[int | str]) -> None:
        """See `policy.CoverageSource.forget`. Only needed for what another run has seen."""
        starts = {module: start for start, module in self._starts}
        for item in seen:
            module, _, line = str(item).rpartition(":")
            if module in starts and line.isdigit() and starts[module] + int(line) < self._lines:
                self._log.forget(starts[module] + int(line))

    def begin(self) -> None:
        """See `policy.CoverageSource.begin`."""
        self._log.begin()
        self._outer = sys.gettrace()
        sys.settrace(self._called)

    def end(self) -> list[str]:
        """See `policy.CoverageSource.end`; in the order of execution. A parent may call it for an executor that died within a case."""
        if sys.gettrace() == self._called:
            sys.settrace(self._outer)
        return [self._label(number) for number in self._log.since()]

    def total(self) -> int:
        """0: which lines hold code is known only for what was run."""
        return 0

    def _called(self, frame: FrameType, _event: str, _argument: Any) -> Tracer | None:
        code = frame.f_code
        try:
            return self._tracers[code]
        except KeyError:
            tracer = self._tracers[code] = self._tracer(code)
            return tracer

    def _tracer(self, code: CodeType) -> Tracer | None:
        place = self._files.get(code.co_filename)
        if place is None:
            return None
        start, log = place[0], self._log
        missing = {line for _, _, line in code.co_lines() if line and start + line not in log}
        missing = {line for line in missing if start + line < self._lines}
        if not missing:
            return None

        def trace(frame: FrameType, _event: str, _argument: Any) -> Tracer | None:
            line = frame.f_lineno
            if line in missing:
                missing.discard(line)
                log.add(start + line)
                if not missing:
                    self._tracers[code] = None
            return trace

        return trace

    def _label(self, number: int) -> str:

        start, module = self._starts[bisect_right(self._starts, (number, "\uffff")) - 1]
        return f"{module}:{number - start}"


def _modules(package: str) -> list[tuple[str, Path]]:
    """(module, file) of all Python source of a package, in the order of paths."""
    try:
        found = find_spec(package)
    except ModuleNotFoundError:
        found = None
    if found is None or not found.origin:
        raise BadInputError(f"package '{package}' can't be found: name one that is installed")
    root = Path(found.origin)
    if root.name != "__init__.py":
        return [(package, root)]
    modules = []
    for path in sorted(root.parent.rglob("*.py")):
        inner = path.relative_to(root.parent).with_suffix("").parts
        modules.append((".".join((package, *(part for part in inner if part != "__init__"))), path))
    return modules
