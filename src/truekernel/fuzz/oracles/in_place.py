"""The in-place variant and `out=` give what the plain call gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

from truekernel.fuzz.libraries.torch_operators import base_name, resolve
from truekernel.fuzz.library import Ran
from truekernel.fuzz.oracles.bounds import Bound, bounds, unit_of
from truekernel.fuzz.oracles.comparing import disagreement
from truekernel.fuzz.oracles.layout import dtypes_of
from truekernel.fuzz.oracles.single import (
    assignments,
    is_determined,
    is_single,
    mismatch,
    mutates,
    outputs,
    run,
    text_of,
)
from truekernel.fuzz.records import Operator, Outcome, TensorValue, TestCase


class InPlace:
    """Valid for determined functions whose first argument is a tensor of the result's shape and dtype (in place), and for those that take `out` (a tensor that
    fits, whose elements lie apart). An in-place variant that refuses says nothing."""

    name = "in_place"
    cost = 2.0

    def applies(self, case: TestCase, operators: Sequence[Operator]) -> bool:
        """A single call of a determined function that writes nothing, first a tensor."""
        call = case.calls[0]
        first = call.arguments[0] if call.arguments else None
        return (
            is_single(case)
            and is_determined(operators[0])
            and not mutates(operators[0])
            and isinstance(first, TensorValue)
            and first.layout not in ("expanded", "overlapping")
        )

    def judge(self, ran: Ran) -> Outcome | None:
        """Compare with both variants."""
        call = ran.case.calls[0]
        plain = [part.clone() for part in outputs(ran.results[0])]

        def limits() -> list[Bound]:
            return bounds(call, ran.operators[0], unit_of(dtypes_of(call)), [part.dtype for part in plain])

        first = call.arguments[0]
        assert isinstance(first, TensorValue)
        variant = in_place(call.operator)
        if (
            variant is not None
            and len(plain) == 1
            and tuple(plain[0].shape) == first.shape
            and str(plain[0].dtype) == f"torch.{first.dtype}"
        ):
            other = self._tried(
                lambda: run(call, function=variant, change=lambda leaves: [_plain(leaf) for leaf in leaves])
            )
            wrong = None if other is None else disagreement(plain, other, limits)
            if wrong:
                return mismatch(self.name, f"{wrong}; plain against in place")
        if takes_out(call.operator) and "out" not in dict(call.keywords) and len(plain) == 1:
            out = torch.zeros(plain[0].numel() * 2, dtype=plain[0].dtype)[::2].reshape(plain[0].shape)
            function = resolve(call.operator)
            other = self._tried(
                lambda: run(call, function=lambda *values, **named: function(*values, **named, out=out))
            )
            wrong = None if other is None else disagreement(plain, other, limits)
            if wrong:
                return mismatch(self.name, f"{wrong}; plain against out=")
        return None

    def _tried(self, work: Callable[[], Any]) -> list[torch.Tensor] | None:
        try:
            return outputs(work())
        except Exception:
            return None

    def script(self, case: TestCase) -> list[str]:
        """The plain call and both variants."""
        call = case.calls[0]
        name = assignments(call)[0].split(" = ")[0]
        lines = [*assignments(call), f"plain = {text_of(call)}"]
        if takes_out(call.operator):
            text = text_of(call)
            lines += [
                "out = torch.zeros(plain.numel() * 2, dtype=plain.dtype)[::2].reshape(plain.shape)",
                f"{text[:-1]}, out=out)",
                "print('plain', plain); print('out  ', out)",
                "torch.testing.assert_close(out, plain, equal_nan=True)",
            ]
        if in_place(call.operator) is not None:
            function = (
                f"torch.Tensor.{base_name(call.operator)}_"
                if not call.operator.startswith("torch.ops.")
                else _overload(call.operator)
            )
            lines += [
                f"{name} = {name}.clone()",
                f"other = {text_of(call, function=function)}",
                "print('plain', plain); print('in place', other)",
                "torch.testing.assert_close(other, plain, equal_nan=True)",
            ]
        return lines


def _plain(leaf: Any) -> Any:
    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf


def _overload(name: str) -> str:
    *front, packet, overload = name.split(".")
    return ".".join([*front, f"{packet}_", overload])


def in_place(name: str) -> Any | None:
    """The in-place variant of a function, or None."""
    try:
        if name.startswith("torch.ops."):
            return resolve(_overload(name))
        if name.startswith(("torch.Tensor.", "torch.special.")) or name.count(".") == 1:
            return resolve(f"torch.Tensor.{base_name(name)}_")
    except AttributeError:
        pass
    return None


def takes_out(name: str) -> bool:
    """Whether a public function may take `out`; methods and overloads of the dispatcher do not."""
    if name.startswith(("torch.ops.", "torch.Tensor.", "torch.nn.")):
        return False
    return "out=" in (inspect.getdoc(resolve(name)) or "").split("\n")[0]
