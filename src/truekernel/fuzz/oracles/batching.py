"""A batch gives what its members give alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from truekernel.fuzz.libraries.torch_operators import resolve
from truekernel.fuzz.libraries.torch_script import tensor_names
from truekernel.fuzz.libraries.torch_values import make
from truekernel.fuzz.library import Ran
from truekernel.fuzz.oracles.bounds import bounds, unit_of
from truekernel.fuzz.oracles.closeness import assertion
from truekernel.fuzz.oracles.comparing import disagreement
from truekernel.fuzz.oracles.layout import dtypes_of
from truekernel.fuzz.oracles.single import (
    SEED,
    addresses_storage,
    assignments,
    has_one_answer,
    is_single,
    mismatch,
    mutates,
    outputs,
    tensors,
    text_of,
    with_values,
)
from truekernel.fuzz.records import Call, Operator, Outcome, TensorValue, TestCase

MEMBERS = 2


class Batching:
    """`torch.vmap` over two values of the first floating tensor against two calls. Valid for determined functions without side effects, whose results have shapes
    that do not depend on values; vmap refuses others itself."""

    name = "batching"
    cost = 4.0
    patience = 2.0

    def applies(self, case: TestCase, operators: Sequence[Operator]) -> bool:
        """A single call of a determined function that writes nothing, with a floating tensor that is not huge."""
        return (
            is_single(case)
            and has_one_answer(operators[0])
            and not mutates(operators[0])
            and not addresses_storage(operators[0])
            and _batched(case.calls[0]) is not None
        )

    def judge(self, ran: Ran) -> Outcome | None:
        """Compare the batch with its members."""
        call = ran.case.calls[0]
        slot = _batched(call)
        assert slot is not None
        leaves = call.leaves()
        value = leaves[slot]
        assert isinstance(value, TensorValue)
        members = [value, replace(value, seed=value.seed + 1, data=None)]
        made = [make(leaf) if isinstance(leaf, TensorValue) else _scalar(leaf) for leaf in leaves]
        function = resolve(call.operator)

        def one(tensor: torch.Tensor) -> Any:
            arguments, keywords = with_values(
                call, [tensor if place == slot else leaf for place, leaf in enumerate(made)]
            )
            torch.manual_seed(SEED)
            return function(*arguments, **keywords)

        alone = [outputs(one(make(member))) for member in members]
        if (
            any([part.shape for part in alone[0]] != [part.shape for part in other] for other in alone[1:])
            or not alone[0]
        ):
            return None
        batch = outputs(torch.vmap(one)(torch.stack([make(member) for member in members])))
        for number, member in enumerate(members):
            got = [part[number] for part in batch]
            changed, dtypes = _with(call, slot, member), [part.dtype for part in alone[0]]
            limits = partial(bounds, changed, ran.operators[0], unit_of(dtypes_of(call)), dtypes)
            wrong = disagreement(alone[number], got, limits)
            if wrong:
                return mismatch(self.name, f"{wrong}; alone against member {number} of a batch")
        return None

    def script(self, case: TestCase) -> list[str]:
        """The batch and its members."""
        call = case.calls[0]
        slot = _batched(call)
        assert slot is not None
        name = tensor_names(call, 0)[slot]
        value = call.leaves()[slot]
        assert isinstance(value, TensorValue)
        from truekernel.fuzz.libraries.torch_script import expression

        return [
            *assignments(call),
            f"f = lambda {name}: {text_of(call)}",
            f"both = torch.stack([{name}, {expression(replace(value, seed=value.seed + 1, data=None))}])",
            "alone = torch.utils._pytree.tree_map(lambda *t: torch.stack(t), f(both[0]), f(both[1]))",
            "batch = torch.vmap(f)(both)",
            "print('alone', alone); print('batch', batch)",
            assertion("batch", "alone"),
        ]


def _scalar(leaf: Any) -> Any:
    from truekernel.fuzz.libraries.torch_calls import named
    from truekernel.fuzz.records import Named

    return named(leaf) if isinstance(leaf, Named) else leaf


def _batched(call: Call) -> int | None:
    """The first floating tensor, where it is small."""
    for slot in tensors(call):
        leaf = call.leaves()[slot]
        assert isinstance(leaf, TensorValue)
        count = 1
        for size in leaf.shape:
            count *= size
        if (
            ("float" in leaf.dtype or "complex" in leaf.dtype)
            and 0 < count <= 4096
            and leaf.layout not in ("huge_stride",)
        ):
            return slot
    return None


def _with(call: Call, slot: int, value: TensorValue) -> Call:
    from truekernel.fuzz.forms import with_leaves

    leaves = call.leaves()
    leaves[slot] = value
    return with_leaves(call, leaves)
