"""Reverse mode against forward mode against finite differences."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.autograd.forward_ad as forward

from truekernel.fuzz.libraries.torch_operators import base_name, resolve
from truekernel.fuzz.libraries.torch_script import tensor_names
from truekernel.fuzz.libraries.torch_values import make
from truekernel.fuzz.library import Ran
from truekernel.fuzz.oracles.batching import _scalar
from truekernel.fuzz.oracles.single import (
    SEED,
    assignments,
    is_determined,
    is_single,
    mismatch,
    mutates,
    text_of,
    with_values,
)
from truekernel.fuzz.records import Call, Operator, Outcome, TensorValue, TestCase

STEPS = (1e-4, 5e-5, 2.5e-5)
MOST_ELEMENTS = 400
SMOOTH = 1e-4
"""Relative difference that two step sizes, and both sides, may have where a function is taken for smooth."""
TOLERANCE = 1e-2
MODES = 1e-6
NO_DERIVATIVE = re.compile(
    r"fake_quant|unpool|embedding|scatter|index_copy|index_put|index_fill|^put|round|floor|ceil|trunc|sign|heaviside|nextafter"
)
"""Operators whose gradient is not the derivative by design: straight-through estimates, indices that may repeat, rows that are left out."""
HALVES = re.compile(r"cholesky_(solve|inverse)|triangular|lu_solve|lu_unpack|householder|ormqr|orgqr|ldl_solve")
UP_TO_PHASE = re.compile(r"eig$|eigh$|svd$|(^|_)qr$|geqrf|schur|lowrank")
"""Decompositions whose factors are determined up to signs, phases or rotations, which differences of two calls take for changes (notes on gradients in the documentation of `linalg.svd` and `linalg.eigh`)."""
SYMMETRIC = re.compile(r"eigh|eigvalsh|cholesky(_ex)?$|ldl_factor|lobpcg")
WIDE_ENOUGH = frozenset({"float32", "float64"})
"""dtypes in which drawn values hardly ever agree; those of 16 bits are full of ties."""
GENERIC = frozenset({"normal", "same", "unit", "positive", "negative"})
MATRICES = frozenset({"symmetric", "triangular"})
"""Recipes with equal elements, which are ties to anything but linear algebra."""


class Gradient:
    """In float64, along one random direction for each mode. Valid where the function is smooth at the point: one-sided and central differences of three step sizes agree;
    values are drawn without ties, NaN or extremes. Forward and reverse mode are compared also where differences say nothing, if both exist, but only at such values."""

    name = "gradient"
    cost = 10.0
    patience = 4.0

    def applies(self, case: TestCase, operators: Sequence[Operator]) -> bool:
        """A single call of a determined function of small floating tensors in general position."""
        if not is_single(case) or not is_determined(operators[0]) or mutates(operators[0]) or operators[0].backward:
            return False
        name = base_name(operators[0].name)
        if NO_DERIVATIVE.search(name) or UP_TO_PHASE.search(name):
            return False
        floats = _floats(case.calls[0])
        recipes = GENERIC | MATRICES if operators[0].family == "linear algebra" else GENERIC
        if HALVES.search(name):
            # These read one half of a matrix and take the other for granted: derivatives along directions that break the structure mean nothing.
            recipes = MATRICES
            if any(leaf is True for leaf in case.calls[0].leaves()):
                return False
        if SYMMETRIC.search(name):
            recipes = frozenset({"symmetric"})
        return bool(floats) and all(
            leaf.values in recipes
            and leaf.data is None
            and leaf.dtype in WIDE_ENOUGH
            and leaf.layout in ("contiguous", "strided", "transposed", "offset", "channels_last")
            for leaf in floats
        )

    def judge(self, ran: Ran) -> Outcome | None:
        """Compare the modes that exist."""
        call = ran.case.calls[0]
        function, points = _function(call)
        if sum(point.numel() for point in points) > MOST_ELEMENTS:
            return None
        generator = torch.Generator().manual_seed(7)
        tracked = [point.clone().requires_grad_() for point in points]
        result = function(tracked)
        if (
            result is None
            or not result.requires_grad
            or not result.isfinite().all()
            or result.numel() > 4 * MOST_ELEMENTS
        ):
            return None
        direction = [
            _within(leaf, torch.randn(point.shape, generator=generator, dtype=torch.float64))
            for leaf, point in zip(_floats(call), points, strict=True)
        ]
        weights = torch.randn(result.shape, generator=generator, dtype=torch.float64)
        gradients = torch.autograd.grad(result, tracked, weights, allow_unused=True)
        reverse = sum(float((g * d).sum()) for g, d in zip(gradients, direction, strict=True) if g is not None)
        size = (
            sum(float((g.abs() * d.abs()).sum()) for g, d in zip(gradients, direction, strict=True) if g is not None)
            + float((weights * result.detach()).abs().sum()) * 1e-3
            + 1e-6
        )
        ahead = _forward(function, points, direction, weights)
        numeric = _differences(function, points, direction, weights, size)
        if numeric is not None and abs(reverse - numeric) > TOLERANCE * size:
            return mismatch(
                self.name,
                f"reverse mode: {reverse:.9g} against finite differences {numeric:.9g}"
                + ("" if ahead is None else f", forward mode {ahead:.9g}"),
            )
        if numeric is not None and ahead is not None and abs(ahead - numeric) > TOLERANCE * size:
            return mismatch(
                self.name,
                f"forward mode: {ahead:.9g} against finite differences {numeric:.9g}, reverse mode {reverse:.9g}",
            )
        if ahead is not None and numeric is not None and abs(ahead - reverse) > MODES * size:
            return mismatch(
                self.name,
                f"forward against reverse mode: {ahead:.12g} against {reverse:.12g}, finite differences {numeric:.9g}",
            )
        return None

    def script(self, case: TestCase) -> list[str]:
        """torch's own gradcheck at the point."""
        call = case.calls[0]
        names = [
            tensor_names(call, 0)[slot]
            for slot, leaf in enumerate(call.leaves())
            if isinstance(leaf, TensorValue) and "float" in leaf.dtype
        ]
        return [
            *assignments(call),
            *(f"{name} = {name}.double().requires_grad_()" for name in names),
            f"f = lambda {', '.join(names)}: {text_of(call)}",
            f"torch.autograd.gradcheck(f, ({', '.join(names)},), check_forward_ad=False)",
            f"torch.autograd.gradcheck(f, ({', '.join(names)},), check_forward_ad=True, check_backward_ad=False)",
        ]


def _within(leaf: TensorValue, direction: torch.Tensor) -> torch.Tensor:
    """A direction that keeps a symmetric or triangular matrix one: operators that expect one may read a half of it only."""
    if direction.dim() < 2 or direction.shape[-1] != direction.shape[-2]:
        return direction
    if leaf.values == "symmetric":
        return direction + direction.mT
    return direction.tril() if leaf.values == "triangular" else direction


def _floats(call: Call) -> list[TensorValue]:
    return [
        leaf
        for leaf in call.leaves()
        if isinstance(leaf, TensorValue) and leaf.dtype in ("float32", "float64", "float16", "bfloat16")
    ]


def _function(call: Call) -> tuple[Callable[[Sequence[torch.Tensor]], torch.Tensor | None], list[torch.Tensor]]:
    """All results that have a derivative, flattened into one, as a function of the floating tensors in float64; and where the case has these."""
    leaves = call.leaves()
    slots = [slot for slot, leaf in enumerate(leaves) if isinstance(leaf, TensorValue) and leaf in _floats(call)]
    made = [make(leaf).detach() if isinstance(leaf, TensorValue) else _scalar(leaf) for leaf in leaves]
    target = resolve(call.operator)
    differentiable: list[bool] = []

    def function(points: Sequence[torch.Tensor]) -> torch.Tensor | None:
        given = list(made)
        for slot, point in zip(slots, points, strict=True):
            given[slot] = point
        arguments, keywords = with_values(call, given)
        torch.manual_seed(SEED)
        result = target(*arguments, **keywords)
        parts = [part for part in _tensors(result) if part.dtype == torch.float64]
        if not differentiable:  # the first call tells which results have a derivative: others are by-products
            differentiable.extend(part.requires_grad for part in parts)
        parts = [part for part, kept in zip(parts, differentiable, strict=True) if kept]
        return torch.cat([part.reshape(-1) for part in parts]) if parts else None

    return function, [made[slot].double() for slot in slots]


def _tensors(result: Any) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    return [part for one in result for part in _tensors(one)] if isinstance(result, tuple | list) else []


def _forward(
    function: Callable[[Sequence[torch.Tensor]], torch.Tensor | None],
    points: Sequence[torch.Tensor],
    direction: Sequence[torch.Tensor],
    weights: torch.Tensor,
) -> float | None:
    try:
        with forward.dual_level():
            result = function([forward.make_dual(point, along) for point, along in zip(points, direction, strict=True)])
            tangent = None if result is None else forward.unpack_dual(result).tangent
            return None if tangent is None else float((tangent * weights).sum())
    except Exception:
        return None


def _differences(
    function: Callable[[Sequence[torch.Tensor]], torch.Tensor | None],
    points: Sequence[torch.Tensor],
    direction: Sequence[torch.Tensor],
    weights: torch.Tensor,
    size: float,
) -> float | None:
    """The directional derivative, where it is smooth."""

    def at(step: float) -> float | None:
        with torch.no_grad():
            result = function([point + step * along for point, along in zip(points, direction, strict=True)])
        return (
            None
            if result is None or result.shape != weights.shape or not result.isfinite().all()
            else float((result * weights).sum())
        )

    middle = at(0.0)
    found: list[float] = []
    for step in STEPS:
        up, down = at(step), at(-step)
        if up is None or down is None or middle is None:
            return None
        sides = (up - middle) / step, (middle - down) / step
        if abs(sides[0] - sides[1]) > 0.05 * size:
            return None
        found.append((up - down) / (2 * step))
    return found[-1] if max(found) - min(found) <= SMOOTH * 10 * size else None
