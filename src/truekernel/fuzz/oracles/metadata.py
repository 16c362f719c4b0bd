"""The meta device foretells shape and dtype of what the CPU returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from truekernel.fuzz.libraries.torch_operators import base_name
from truekernel.fuzz.libraries.torch_script import tensor_names
from truekernel.fuzz.library import Ran
from truekernel.fuzz.oracles.single import UNDETERMINED, assignments, is_single, mismatch, outputs, run, text_of
from truekernel.fuzz.records import Operator, Outcome, TestCase

HALVES = frozenset({torch.float16, torch.bfloat16})


class Metadata:
    """Valid where shapes do not depend on values: operators that need values refuse meta tensors, and then nothing is said. Strides are not compared: they are
    no promise; nor are by-products that a device leaves empty."""

    name = "metadata"
    cost = 1.0
    patience = 2.0

    def applies(self, case: TestCase, operators: Sequence[Operator]) -> bool:
        """A single call that returns tensors."""
        return is_single(case) and not UNDETERMINED.search(base_name(operators[0].name))

    def judge(self, ran: Ran) -> Outcome | None:
        """Compare number, shapes and dtypes of the results."""
        call = ran.case.calls[0]
        got = outputs(ran.results[0])
        if not got or not isinstance(ran.results[0], torch.Tensor | tuple | list):
            return None
        told = outputs(run(call, change=lambda leaves: [_meta(leaf) for leaf in leaves]))
        if any(part.device.type != "meta" for part in told):
            return None
        if len(told) != len(got):
            return mismatch(self.name, f"number of outputs: meta {len(told)}, CPU {len(got)}")
        for place, (a, b) in enumerate(zip(told, got, strict=True)):
            if place and (0,) in (a.shape, b.shape):  # a by-product that one of the devices does not make
                continue
            if a.shape != b.shape:
                return mismatch(self.name, f"shape of output {place}: meta {tuple(a.shape)}, CPU {tuple(b.shape)}")
            if a.dtype != b.dtype and not _statistics(ran.operators[0], place, a.dtype, b.dtype):
                return mismatch(self.name, f"dtype of output {place}: meta {a.dtype}, CPU {b.dtype}")
        return None

    def script(self, case: TestCase) -> list[str]:
        """Both calls, and their shapes and dtypes."""
        call = case.calls[0]
        names = list(tensor_names(call, 0).values())
        return [
            *assignments(call),
            f"cpu = {text_of(call)}",
            *(f"{name} = {name}.to('meta')" for name in names),
            f"meta = {text_of(call)}",
            "show = lambda r: [(t.shape, t.dtype) for t in (r if isinstance(r, (tuple, list)) else [r])]",
            "print('CPU ', show(cpu)); print('meta', show(meta))",
            "assert show(cpu) == show(meta)",
        ]


def _statistics(operator: Operator, place: int, one: torch.dtype, other: torch.dtype) -> bool:
    """Means and deviations of a 16-bit input have its dtype on a CPU where parameters have it too and float32 where these are or elsewhere, on purpose (pytorch pull request 77407)."""
    both = {one, other}
    return operator.family == "normalisation" and place > 0 and torch.float32 in both and bool(both & HALVES)


def _meta(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")
    return torch.device("meta") if isinstance(leaf, torch.device) else leaf
