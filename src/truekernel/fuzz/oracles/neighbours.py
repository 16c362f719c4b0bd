"""Memory beside a tensor neither decides a result nor changes: out-of-bounds accesses without a sanitizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from truekernel.fuzz.libraries.torch_operators import base_name
from truekernel.fuzz.libraries.torch_script import expression, tensor_names
from truekernel.fuzz.libraries.torch_values import GUARD, geometry, make
from truekernel.fuzz.library import Ran
from truekernel.fuzz.oracles.closeness import assertion
from truekernel.fuzz.oracles.determinism import first_difference
from truekernel.fuzz.oracles.single import (
    LAYOUT_MATTERS,
    is_determined,
    is_single,
    mismatch,
    mutates,
    outputs,
    run,
    same_bits,
    text_of,
)
from truekernel.fuzz.records import Operator, Outcome, TensorValue, TestCase

BYTES = (0x3F, 0xC1)
"""Two fillings whose values differ in every dtype: 0.747 and -24.2 as float32, 63 and 193 as uint8."""
BOOLEANS = (0x00, 0x01)


class Neighbours:
    """Every tensor is a view into a larger buffer. Valid for determined operators which take no more than their tensors' elements: not for those that look at the
    storage (`as_strided`, `set_`). Sees reads whose values reach the result, and writes, within 512 bytes or between a view's elements."""

    name = "neighbours"
    cost = 3.0
    patience = 2.0

    def applies(self, case: TestCase, operators: Sequence[Operator]) -> bool:
        """A single call of a determined operator that is not about layout."""
        return (
            is_single(case) and is_determined(operators[0]) and not LAYOUT_MATTERS.search(base_name(operators[0].name))
        )

    def judge(self, ran: Ran) -> Outcome | None:
        """Compare two fillings, and look whether the filling is still there."""
        call = ran.case.calls[0]
        found: list[list[torch.Tensor]] = []
        values = [leaf for leaf in call.leaves() if isinstance(leaf, TensorValue)]
        for number in (0, 1, 0):
            if number == 0 and len(found) == 2 and same_bits(*found):
                return None
            buffers: list[tuple[TensorValue, torch.Tensor, torch.Tensor]] = []

            def maker(value: TensorValue, number: int = number, buffers: list[Any] = buffers) -> torch.Tensor:
                byte = (BOOLEANS if value.dtype == "bool" else BYTES)[number]
                tensor = make(replace(value, gradient=False), byte)
                buffers.append((value, tensor, _bytes(tensor).clone()))
                return tensor

            found.append([part.clone() for part in outputs(run(call, maker=maker))])
            for place, (value, tensor, before) in enumerate(buffers):
                changed = _changed(value, tensor, before)
                if changed:
                    return mismatch(
                        self.name,
                        f"writes outside of a tensor: {changed} bytes beside the elements of tensor {place} of {len(values)} changed",
                    )
            written = _input_written(ran.operators[0], buffers)
            if written:
                return mismatch(self.name, written)
        if not same_bits(found[0], found[2]):
            return None
        return mismatch(
            self.name,
            f"reads outside of a tensor: with other memory beside its arguments the result is {first_difference(found[0], found[1])} that before",
        )

    def script(self, case: TestCase) -> list[str]:
        """The call with two fillings of the memory beside its arguments."""
        call = case.calls[0]
        names = tensor_names(call, 0)
        lines = ["results = []", "for byte in (63, 193):  # memory beside the arguments"]
        for slot, leaf in enumerate(call.leaves()):
            if isinstance(leaf, TensorValue):
                strides, offset, elements = geometry(leaf.shape, leaf.layout)
                size = _item(leaf)
                around = GUARD // size
                filled = f"torch.full(({(elements + 2 * around) * size},), {'byte % 2' if leaf.dtype == 'bool' else 'byte'}, dtype=torch.uint8).view(torch.{leaf.dtype})"
                text = expression(replace(leaf, layout="contiguous", gradient=False))
                lines.append(f"    {names[slot]} = {filled}.as_strided({leaf.shape}, {strides}, {offset + around})")
                if leaf.layout not in ("expanded", "overlapping"):
                    lines.append(f"    {names[slot]}.copy_({text})")
        return [
            *lines,
            f"    results.append({text_of(call)})",
            "    print(results[-1])",
            assertion("results[1]", "results[0]", exact=True),
        ]


def _input_written(operator: Operator, buffers: list[tuple[TensorValue, torch.Tensor, torch.Tensor]]) -> str:
    """An argument that was written although neither name nor schema says so; only where there is a schema to say."""
    if mutates(operator) or not operator.schema or not operator.name.startswith("torch.ops."):
        return ""
    for place, (_, tensor, before) in enumerate(buffers):
        if not torch.equal(_bytes(tensor), before):
            return f"writes an argument: tensor {place} of {len(buffers)} changed, which the schema does not allow"
    return ""


def _item(value: TensorValue) -> int:
    from truekernel.fuzz.libraries.torch_values import TORCH_TYPES

    return TORCH_TYPES[value.dtype].itemsize


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """All bytes of the storage behind a view."""
    return torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())


def _changed(value: TensorValue, tensor: torch.Tensor, before: torch.Tensor) -> int:
    """How many bytes that are no element's differ from what they were."""
    after = _bytes(tensor)
    if (
        tuple(tensor.shape) != value.shape
    ):  # an output argument that was resized: its new elements may lie anywhere in the storage
        return 0
    if after.shape != before.shape or torch.equal(after, before):
        return 0
    strides, offset, _ = geometry(value.shape, value.layout)
    if 0 in value.shape:
        return int((after != before).sum())
    elements = torch.zeros(after.numel() // tensor.element_size(), dtype=torch.bool)
    elements.as_strided(value.shape, strides, offset + GUARD // tensor.element_size()).fill_(True)
    outside = ~elements.repeat_interleave(tensor.element_size())
    return int((after != before)[: outside.numel()][outside].sum())
