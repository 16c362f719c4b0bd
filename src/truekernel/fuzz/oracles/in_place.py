"""The in-place variant and `out=` give what the plain call gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from truekernel.fuzz.libraries.torch_operators import base_name, resolve
from truekernel.fuzz.library import Ran
from truekernel.fuzz.oracles.bounds import Bound, bounds, unit_of
from truekernel.fuzz.oracles.closeness import assertion
from truekernel.fuzz.oracles.comparing import disagreement
from truekernel.fuzz.oracles.layout import dtypes_of
from truekernel.fuzz.oracles.single import (
    addresses_storage,
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
    """Valid for determined functions whose first argument is a tensor of the result's shape and dtype. A variant that refuses says nothing."""

    name = "in_place"
    cost = 1.0
    patience = 2.0

    def applies(self, case: TestCase, operators: Sequence[Operator]) -> bool:
        """A single call of a determined function that writes nothing and has a variant that does, first a tensor."""
        return (
            _may_compare(case, operators[0])
            and not addresses_storage(operators[0])
            and in_place(operators[0].name) is not None
        )

    def judge(self, ran: Ran) -> Outcome | None:
        """Compare with the variant."""
        call = ran.case.calls[0]
        plain = [part.clone() for part in outputs(ran.results[0])]
        first = call.arguments[0]
        assert isinstance(first, TensorValue)
        if len(plain) != 1 or tuple(plain[0].shape) != first.shape or str(plain[0].dtype) != f"torch.{first.dtype}":
            return None
        other = outputs(
            run(call, function=in_place(call.operator), change=lambda leaves: [_plain(leaf) for leaf in leaves])
        )
        wrong = disagreement(plain, other, _limits(ran, plain))
        return mismatch(self.name, f"{wrong}; plain against in place") if wrong else None

    def script(self, case: TestCase) -> list[str]:
        """The plain call and the variant."""
        call = case.calls[0]
        name = assignments(call)[0].split(" = ")[0]
        function = _variant(call.operator)
        if in_place(call.operator) is None:
            return [*assignments(call), f"plain = {text_of(call)}"]
        return [
            *assignments(call),
            f"plain = {text_of(call)}",
            f"{name} = {name}.clone()",
            f"other = {text_of(call, function=function)}",
            "print('plain   ', plain); print('in place', other)",
            assertion("other", "plain"),
        ]


class Out:
    """Valid for determined functions that take `out`: a tensor that fits, with elements apart from each other. What refuses it says nothing."""

    name = "out"
    cost = 1.0
    patience = 2.0

    def applies(self, case: TestCase, operators: Sequence[Operator]) -> bool:
        """A single call of a determined function that takes `out` and was not given it, first a tensor."""
        return (
            _may_compare(case, operators[0])
            and takes_out(operators[0].name)
            and "out" not in dict(case.calls[0].keywords)
        )

    def judge(self, ran: Ran) -> Outcome | None:
        """Compare with what is written into `out`."""
        call = ran.case.calls[0]
        plain = [part.clone() for part in outputs(ran.results[0])]
        if len(plain) != 1:
            return None
        out = torch.zeros(plain[0].numel() * 2, dtype=plain[0].dtype)[::2].reshape(plain[0].shape)
        run(call, function=partial(resolve(call.operator), out=out))
        wrong = disagreement(plain, [out], _limits(ran, plain))
        return mismatch(self.name, f"{wrong}; plain against out=") if wrong else None

    def script(self, case: TestCase) -> list[str]:
        """The plain call and the one with `out`."""
        call = case.calls[0]
        text = text_of(call)
        return [
            *assignments(call),
            f"plain = {text}",
            "out = torch.zeros(plain.numel() * 2, dtype=plain.dtype)[::2].reshape(plain.shape)",
            f"{text[:-1]}, out=out)",
            "print('plain', plain); print('out  ', out)",
            assertion("out", "plain"),
        ]


def _may_compare(case: TestCase, operator: Operator) -> bool:
    call = case.calls[0]
    first = call.arguments[0] if call.arguments else None
    plain = isinstance(first, TensorValue) and first.layout not in ("expanded", "overlapping")
    return plain and is_single(case) and is_determined(operator) and not mutates(operator)


def _limits(ran: Ran, plain: list[torch.Tensor]) -> Callable[[], list[Bound]]:
    call = ran.case.calls[0]
    return partial(bounds, call, ran.operators[0], unit_of(dtypes_of(call)), [part.dtype for part in plain])


def _plain(leaf: Any) -> Any:
    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf


def _overload(name: str) -> str:
    *front, packet, overload = name.split(".")
    return ".".join([*front, f"{packet}_", overload])


def _variant(name: str) -> str:
    """Name of the in-place variant, if there is one."""
    if name.startswith("torch.ops."):
        return _overload(name)
    if name.startswith(("torch.Tensor.", "torch.special.")) or name.count(".") == 1:
        return f"torch.Tensor.{base_name(name)}_"
    return f"{name}_"


def in_place(name: str) -> Any | None:
    """The in-place variant of a function, or None."""
    try:
        return resolve(_variant(name))
    except AttributeError:
        return None


def takes_out(name: str) -> bool:
    """Whether a public function may take `out`; methods and overloads of the dispatcher do not."""
    if name.startswith(("torch.ops.", "torch.Tensor.", "torch.nn.")):
        return False
    return "out=" in (inspect.getdoc(resolve(name)) or "").split("\n")[0]
