"""Judges for libraries whose results become numpy arrays: determinism, compiled against eager, vectorised against one by one.

Tolerances are relative to the largest element and generous, since no float64 bound is computed here: what is reported is far beyond rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from truekernel.fuzz.library import Ran
from truekernel.fuzz.records import Operator, Outcome, TensorValue, TestCase

TOLERANCE = {2: 5e-2, 4: 1e-3, 8: 1e-6, 16: 1e-6}
"""Of the largest element, by bytes of an element."""
Arrays = Callable[[Any], list[np.ndarray]]


class ArrayOracle:
    """What these judges share: a single call, with at least one array, of a function that chance does not decide."""

    name = ""
    cost = 2.0
    patience = 2.0

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays

    def applies(self, case: TestCase, operators: Sequence[Operator]) -> bool:
        """A single call of a function that chance does not decide."""
        call = case.calls[0]
        return (
            len(case.calls) == 1
            and call.repeat == 1
            and any(isinstance(leaf, TensorValue) for leaf in call.leaves())
            and "random" not in operators[0].name
        )

    def judge(self, ran: Ran) -> Outcome | None:
        """A mismatch, or None."""
        raise NotImplementedError

    def script(self, case: TestCase) -> list[str]:  # noqa: ARG002
        """Nothing but the call is needed."""
        return ["# run the call twice, or through the library's compiler, and compare"]

    def compared(self, one: Any, other: Any, what: str) -> Outcome | None:
        """The first difference of two results."""
        left, right = self.arrays(one), self.arrays(other)
        if len(left) != len(right):
            return Outcome("mismatch", self.name, message=f"outputs: {len(left)} against {len(right)}; {what}")
        for place, (a, b) in enumerate(zip(left, right, strict=True)):
            if a.shape != b.shape or a.dtype != b.dtype:
                return Outcome(
                    "mismatch",
                    self.name,
                    message=f"shape or dtype of output {place}: {a.shape} {a.dtype} against {b.shape} {b.dtype}; {what}",
                )
            text = difference(a, b)
            if text:
                return Outcome("mismatch", self.name, message=f"values of output {place}: {text}; {what}")
        return None


def difference(a: np.ndarray, b: np.ndarray) -> str:
    """What is wrong between two arrays of one shape and dtype, or ""."""
    if not a.size:
        return ""
    if a.dtype.kind in "biu":
        return "" if (a == b).all() else f"{int((a != b).sum())} of {a.size} whole numbers differ"
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    left, right = a.astype(wide), b.astype(wide)
    classes = (np.isnan(left) != np.isnan(right)) | (np.isinf(left) != np.isinf(right))
    if classes.any():
        return f"class of {int(classes.sum())} of {a.size} elements"
    finite = np.isfinite(left) & np.isfinite(right)
    if not finite.any():
        return ""
    gap = np.abs(left[finite] - right[finite]).max()
    size = np.abs(left[finite]).max()
    return (
        f"{gap:.3g} apart where the largest is {size:.3g}"
        if gap > TOLERANCE.get(a.dtype.itemsize, 5e-2) * size + 1e-30
        else ""
    )


class Determinism(ArrayOracle):
    """The same call gives the same bits: valid on one thread, for functions that chance does not decide."""

    name = "determinism"

    def __init__(self, call: Callable[..., Any], arrays: Arrays) -> None:
        super().__init__(arrays)
        self.call = call

    def judge(self, ran: Ran) -> Outcome | None:
        """Compare the result with that of a second call, bit for bit."""
        call = _bound(ran)
        again = call()
        for place, (a, b) in enumerate(zip(self.arrays(ran.results[0]), self.arrays(again), strict=True)):
            if a.tobytes() != b.tobytes():
                return Outcome("mismatch", self.name, message=f"the same call gives other bits: output {place}")
        return None


class Compiled(ArrayOracle):
    """Eager against compiled: valid for functions without side effects. What can't be traced says nothing."""

    name = "compile"
    cost = 4.0
    patience = 2.0

    def __init__(self, compile: Callable[[Callable[..., Any]], Callable[..., Any]], arrays: Arrays) -> None:
        super().__init__(arrays)
        self.compile = compile

    def judge(self, ran: Ran) -> Outcome | None:
        """Compare."""
        call = _bound(ran)
        places = [place for place, value in enumerate(call.arguments) if hasattr(value, "nbytes")]
        traced = _plain(call.function)
        compiled = self.compile(lambda *given: _with(traced, call, places, given))
        return self.compared(
            ran.results[0], compiled(*(call.arguments[place] for place in places)), "eager against compiled"
        )


class Vectorised(ArrayOracle):
    """One by one against a batch of two equal members: valid for functions without side effects, on one array."""

    name = "batching"
    cost = 4.0
    patience = 2.0

    def __init__(
        self, vectorise: Callable[[Callable[..., Any]], Callable[..., Any]], stack: Callable[[Any], Any], arrays: Arrays
    ) -> None:
        super().__init__(arrays)
        self.vectorise, self.stack = vectorise, stack

    def judge(self, ran: Ran) -> Outcome | None:
        """Compare the first member."""
        call = _bound(ran)
        places = [place for place, value in enumerate(call.arguments) if hasattr(value, "nbytes")]
        if not places:
            return None
        traced, first = _plain(call.function), call.arguments[places[0]]
        batch = self.vectorise(lambda value: _with(traced, call, places[:1], (value,)))(self.stack([first, first]))
        members = [part[0] for part in self.arrays(batch)]
        return self.compared(ran.results[0], members, "alone against a member of a batch")


def _bound(ran: Ran) -> Any:
    """The call made again."""
    assert ran.bound is not None
    return ran.bound()


def _plain(function: Any) -> Any:
    """The library's function, without what waits for its result."""
    return function.args[0] if hasattr(function, "args") else function


def _with(function: Any, call: Any, places: Sequence[int], given: Sequence[Any]) -> Any:
    values = list(call.arguments)
    for place, value in zip(places, given, strict=True):
        values[place] = value
    return function(*values, **call.keywords)
