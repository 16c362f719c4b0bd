"""Coverage source `overloads`: operator overloads that torch's dispatcher is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from truekernel.fuzz.coverage.memory import SeenLog


class _Watcher(TorchDispatchMode):
    """Tells of each overload that reaches the dispatcher below autograd; results are those of the plain call."""

    def __init__(self, log: SeenLog, numbers: dict[str, int]) -> None:
        super().__init__()
        self._log = log
        self._numbers = numbers
        self._known: set[Any] = set()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Nothing is compiled in a case that is watched; keeping the compiler out would import it, at two seconds and 120 MiB an executor.
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in self._known:
            self._known.add(func)
            number = self._numbers.get(func.name())
            if number is not None:
                self._log.add(number)
        return func(*args, **(kwargs or {}))


class Overloads:
    """Overloads such as "aten::add.Tensor" that were dispatched for the first time, also by operators that are made of others. A `policy.CoverageSource`.

    Cheap, but says nothing of the path within an overload; runs out soon. Each dispatched call costs some microseconds between `begin` and `end`.
    A case must not be compiled in between: `torch.compile` does not work under a dispatch mode.
    """

    kind = "overloads"
    judging = False

    def __init__(self) -> None:
        self._names = sorted(torch._C._dispatch_get_all_op_names())
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._log = SeenLog(len(self._names))
        self._watcher = _Watcher(self._log, self._numbers)
        self._inside = False

    def start(self) -> None:
        """See `policy.CoverageSource.start`."""

    def forget(self, seen: Sequence[int | str]) -> None:
        """See `policy.CoverageSource.forget`. Only needed for what another run has seen."""
        for name in seen:
            number = self._numbers.get(str(name))
            if number is not None:
                self._log.forget(number)

    def begin(self) -> None:
        """See `policy.CoverageSource.begin`."""
        self._log.begin()
        self._watcher.__enter__()
        self._inside = True

    def end(self) -> list[str]:
        """See `policy.CoverageSource.end`; in the order of dispatch. A parent may call it for an executor that died within a case."""
        if self._inside:
            self._watcher.__exit__(None, None, None)
            self._inside = False
        return [self._names[number] for number in self._log.since()]

    def total(self) -> int:
        """How many overloads torch has registered."""
        return len(self._names)
