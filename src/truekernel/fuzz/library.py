"""What a library's adapter offers: its operators, samples of calls, how a case becomes calls, and how it is printed.

Adding a library is one file in `libraries/` with a class that has these members and a function `library()` that makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from truekernel.fuzz.records import Call, Operator, Outcome, TensorValue, TestCase


@dataclass(frozen=True, slots=True)
class Bound:
    """A call whose arguments are made: `function(*arguments, **keywords)`."""

    operator: Operator
    call: Call
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    leaves: list[Any]
    """Its leaves as made, in the order of `Call.leaves`."""

    def __call__(self) -> Any:
        """Make the call."""
        return self.function(*self.arguments, **self.keywords)


@dataclass(frozen=True, slots=True)
class Ran:
    """A case whose plain run was valid. `operators`, `results`: of each call; results as the library returned them. `bound`: makes the arguments of its first call anew."""

    case: TestCase
    operators: tuple[Operator, ...]
    results: tuple[Any, ...]
    seconds: float
    bound: Callable[[], Bound] | None = None


class Oracle(Protocol):
    """Judges a case whose plain run was valid, in the executing process. Its docstring says when it is valid and what it can't tell.

    A mismatch's `Outcome.location` tells root causes apart, where the oracle can.
    """

    name: str
    cost: float
    """Calls of the operator that it makes, about: dear oracles are asked less often."""
    patience: float
    """How many times the limit of a plain run it may take before that is a hang."""

    def applies(self, case: TestCase, operators: Sequence[Operator]) -> bool:
        """Whether the condition under which this oracle is valid can hold for a case, by its data alone."""
        ...

    def judge(self, ran: Ran) -> Outcome | None:
        """A mismatch, or None: nothing wrong, or no word on this case. What it raises counts as no word."""
        ...

    def script(self, case: TestCase) -> list[str]:
        """Lines of a script that shows what this oracle looks at, for a case with one call; they end by printing both sides."""
        ...


class Library(Protocol):
    """A library that is fuzzed. Made in the parent, where it must not start threads; `start` is called in the executor after the fork."""

    name: str
    feature_names: tuple[str, ...]

    def operators(self) -> Sequence[Operator]:
        """All that can be called, always in the same order."""
        ...

    def samples(self) -> Mapping[str, Sequence[Call]]:
        """Calls by operator name that were seen to be valid."""
        ...

    def versions(self) -> dict[str, str]:
        """Versions that a report states."""
        ...

    def start(self) -> None:
        """Prepare a process that executes cases."""
        ...

    def make(self, value: TensorValue) -> Any:
        """A tensor from its description. The same description gives the same bits."""
        ...

    def bind(self, call: Call, results: Sequence[Any], leaves: Sequence[Sequence[Any]]) -> Bound:
        """A call with arguments made. `results`: of the calls before it; `leaves`: their leaves as made. Raises ValueError for arguments that can't be made."""
        ...

    def footprint(self, ran: Ran) -> int:
        """Bytes of the inputs and outputs of a case that ran."""
        ...

    def location(self, error: BaseException) -> str:
        """Where in the library an exception comes from, "file:line", or ""."""
        ...

    def oracles(self) -> Sequence[Oracle]:
        """Judges beside crash, assertion, hang and memory, which the executor sees itself."""
        ...

    def violation(self, case: TestCase) -> str:
        """Which documented precondition a case breaks that the library does not check, or "": it is then not one that users may give."""
        ...

    def script(self, case: TestCase) -> list[str]:
        """Lines of a script that makes the calls of a case, without imports of anything but the library; results are r0, r1, ..."""
        ...

    def literal(self, value: TensorValue) -> TensorValue:
        """The same tensor with its values written out, where it is small; else as it is."""
        ...
