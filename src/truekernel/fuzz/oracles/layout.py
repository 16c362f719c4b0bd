"""Where elements lie does not decide what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from truekernel.fuzz.libraries.torch_operators import base_name
from truekernel.fuzz.libraries.torch_values import TORCH_TYPES, geometry
from truekernel.fuzz.library import Ran
from truekernel.fuzz.oracles.bounds import bounds, unit_of
from truekernel.fuzz.oracles.closeness import assertion
from truekernel.fuzz.oracles.comparing import disagreement
from truekernel.fuzz.oracles.single import (
    LAYOUT_MATTERS,
    assignments,
    has_one_answer,
    is_single,
    mismatch,
    mutates,
    outputs,
    run,
    text_of,
)
from truekernel.fuzz.records import Call, Operator, Outcome, TensorValue, TestCase

LAYOUTS = ("strided", "transposed", "offset", "channels_last")


class Layout:
    """The same values, contiguous and not. Valid for determined operators that are not about layout; results may differ by roundings, since vectorised and scalar
    code use other approximations, up to the bound of `bounds`. Values come from the contiguous form of the case's own tensors."""

    name = "layout"
    cost = 2.0
    patience = 2.0

    def applies(self, case: TestCase, operators: Sequence[Operator]) -> bool:
        """A single call of a determined operator with a tensor of some dimension."""
        return (
            is_single(case)
            and has_one_answer(operators[0])
            and not LAYOUT_MATTERS.search(base_name(operators[0].name))
            and not mutates(operators[0])
            and any(isinstance(leaf, TensorValue) and leaf.shape for leaf in case.calls[0].leaves())
        )

    def judge(self, ran: Ran) -> Outcome | None:
        """Compare the call on contiguous tensors with the case's own layout and with another."""
        call = ran.case.calls[0]
        plain = outputs(run(call, change=lambda leaves: [_contiguous(leaf) for leaf in leaves]))
        leaves = call.leaves()
        tensors = [leaf for leaf in leaves if isinstance(leaf, TensorValue)]
        if all(leaf.layout == "contiguous" for leaf in tensors):
            layout = LAYOUTS[tensors[0].seed % len(LAYOUTS)]
            other = outputs(run(call, change=lambda leaves: [relaid(leaf, layout) for leaf in leaves]))
            named = layout
        else:
            other = outputs(run(call))
            named = "/".join(leaf.layout for leaf in tensors)
        wrong = disagreement(
            plain,
            other,
            lambda: bounds(call, ran.operators[0], unit_of(dtypes_of(call)), [part.dtype for part in plain]),
        )
        return None if wrong is None else mismatch(self.name, f"{wrong}; contiguous against {named}")

    def script(self, case: TestCase) -> list[str]:
        """Both calls."""
        call = case.calls[0]
        tensors = [leaf for leaf in call.leaves() if isinstance(leaf, TensorValue)]
        layout = LAYOUTS[tensors[0].seed % len(LAYOUTS)] if all(leaf.layout == "contiguous" for leaf in tensors) else ""
        lines = assignments(call, "", lambda leaf: replace(leaf, layout=layout) if layout else leaf)
        copies = [line.split(" = ")[0] for line in lines]
        return [
            *lines,
            f"other = {text_of(call)}",
            *(f"{name} = {name}.detach().clone(memory_format=torch.contiguous_format)" for name in copies),
            f"plain = {text_of(call)}",
            "print('contiguous', plain); print('other     ', other)",
            assertion("other", "plain"),
        ]


def dtypes_of(call: Call) -> list[torch.dtype]:
    """dtypes of a call's tensors."""
    return [TORCH_TYPES[leaf.dtype] for leaf in call.leaves() if isinstance(leaf, TensorValue)]


def _contiguous(leaf: Any) -> Any:
    return leaf.detach().clone(memory_format=torch.contiguous_format) if isinstance(leaf, torch.Tensor) else leaf


def relaid(leaf: Any, layout: str) -> Any:
    """A tensor with the same values in another layout; anything else as it is."""
    if not isinstance(leaf, torch.Tensor):
        return leaf
    strides, offset, elements = geometry(tuple(leaf.shape), layout)
    return (
        torch.zeros(elements, dtype=leaf.dtype).as_strided(leaf.shape, strides, offset).copy_(leaf.detach())
        if leaf.numel()
        else leaf.detach()
    )
