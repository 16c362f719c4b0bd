"""float32 (and half, and complex64) against float64, within the error that honest arithmetic makes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from truekernel.fuzz.libraries.torch_operators import base_name
from truekernel.fuzz.library import Ran
from truekernel.fuzz.oracles.bounds import UNITS, Bound, bounds, widened
from truekernel.fuzz.oracles.closeness import assertion
from truekernel.fuzz.oracles.comparing import beyond, disagreement
from truekernel.fuzz.oracles.single import (
    LAYOUT_MATTERS,
    addresses_storage,
    assignments,
    has_one_answer,
    is_single,
    mismatch,
    mutates,
    outputs,
    run,
    text_of,
)
from truekernel.fuzz.records import Named, Operator, Outcome, TensorValue, TestCase

NARROW = {"float32", "bfloat16", "float16", "complex64"}
NEAR = 16.0
"""Roundoffs within which no bound is needed."""


class Precision:
    """Valid for determined operators on floating tensors of one dtype, values moderate or special (NaN, infinities): extremes overflow on the way, and integers of
    another width wrap. The float64 result is the truth only where the operator states the same function for it, so dtypes of results must follow."""

    name = "precision"
    cost = 2.0
    patience = 4.0

    def applies(self, case: TestCase, operators: Sequence[Operator]) -> bool:
        """A single call whose floating tensors share one narrow dtype, with moderate values."""
        if not is_single(case) or not has_one_answer(operators[0]) or mutates(operators[0]):
            return False
        leaves = case.calls[0].leaves()
        tensors = [leaf for leaf in leaves if isinstance(leaf, TensorValue)]
        laid_out = any(leaf.layout != "contiguous" for leaf in tensors)  # a copy of another dtype is laid out anew
        if addresses_storage(operators[0]) or (laid_out and LAYOUT_MATTERS.search(base_name(operators[0].name))):
            return False
        floats = {leaf.dtype for leaf in tensors if "float" in leaf.dtype or "complex" in leaf.dtype}
        moderate = not any(leaf.values in ("extreme", "mixed", "subnormal") for leaf in tensors)
        scalars = all(
            abs(leaf) < 1e6 and (leaf == 0 or abs(leaf) > 1e-6)
            for leaf in leaves
            if isinstance(leaf, int | float) and not math.isnan(leaf)
        )
        return (
            len(floats) == 1
            and floats <= NARROW
            and moderate
            and scalars
            and not any(isinstance(leaf, Named) and leaf.kind == "dtype" for leaf in leaves)
        )

    def judge(self, ran: Ran) -> Outcome | None:
        """Compare with the call in float64."""
        call = ran.case.calls[0]
        narrow = outputs(ran.results[0])
        wide = outputs(run(call, change=lambda leaves: [widened(leaf) for leaf in leaves]))
        if len(narrow) != len(wide) or any(_pairs(a, b) is None for a, b in zip(narrow, wide, strict=True)):
            return None
        unit = max((UNITS.get(part.dtype, 0.0) for part in narrow), default=0.0)
        if unit == 0.0:
            unit = 2.0**-24
        cast = [b.to(a.dtype) for a, b in zip(narrow, wide, strict=True)]
        found: list[Bound] = []

        def limits() -> list[Bound]:
            found.extend(bounds(call, ran.operators[0], unit, [part.dtype for part in narrow]))
            return found

        wrong = disagreement(cast, narrow, limits)
        if wrong is None:
            return None
        if wrong.startswith(("shape", "outputs")):
            return mismatch(self.name, f"{wrong}; float64 against {narrow[0].dtype}")
        for place, (a, b) in enumerate(zip(narrow, wide, strict=True)):
            text = beyond(b, a.to(b.dtype), found[place], place, a.dtype)
            if text:
                return mismatch(self.name, f"{text}; float64 against {a.dtype}")
        return None

    def script(self, case: TestCase) -> list[str]:
        """Both calls."""
        call = case.calls[0]
        wide = (
            "torch.complex128"
            if any(isinstance(leaf, TensorValue) and "complex" in leaf.dtype for leaf in call.leaves())
            else "torch.float64"
        )
        floats = [
            line.split(" = ")[0]
            for line, leaf in zip(
                assignments(call), [leaf for leaf in call.leaves() if isinstance(leaf, TensorValue)], strict=True
            )
            if leaf.dtype in NARROW
        ]
        return [
            *assignments(call),
            f"narrow = {text_of(call)}",
            *(f"{name} = {name}.to({wide})" for name in floats),
            f"wide = {text_of(call)}",
            "print('narrow ', narrow); print('float64', wide)",
            assertion("narrow", "wide"),
        ]


def _pairs(narrow: torch.Tensor, wide: torch.Tensor) -> bool | None:
    """Whether a result's dtype followed that of the arguments; None where it did not."""
    if narrow.dtype.is_floating_point or narrow.dtype.is_complex:
        return (
            True
            if wide.dtype.itemsize >= narrow.dtype.itemsize
            and narrow.dtype.is_complex == wide.dtype.is_complex
            and wide.dtype != narrow.dtype
            else None
        )
    return True if narrow.dtype == wide.dtype else None
