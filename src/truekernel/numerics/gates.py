"""Gates that judge the test before any kernel: validity, discrimination, and which axes may be cut short.

From "Tolerance design" practice: every honest program must pass with a margin of two (validity), and the computation in the next lower precision must fail
(discrimination; Tensara's policy, https://www.sarthakmangla.com/blog/wrong); a case that fails the first is dropped, one that fails the second is tagged precision-blind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import torch

from truekernel.model import Axes, Problem, Tensors
from truekernel.numerics.formats import FORMATS, TORCH_DTYPES, power_of_two
from truekernel.numerics.reference import widen

VALIDITY_MARGIN = 2.0
"""Honest programs may use at most half of what is allowed."""
LOWER_PRECISION: dict[str, int] = {"float64": 24, "float32": 11, "float16": 8, "bfloat16": 4}
"""Bits of the significand of the next lower precision: float32; TF32 (as float16); bfloat16; an 8-bit format (e4m3)."""


def is_valid(shares: Iterable[float], margin: float = VALIDITY_MARGIN) -> bool:
    """Whether honest programs pass with a margin. `shares`: what each uses of the allowed error, 1 = all of it."""
    return all(share * margin <= 1.0 for share in shares)


def round_significand(values: torch.Tensor, bits: int) -> torch.Tensor:
    """Float64 values rounded to `bits` bits of significand, ties to even, with the exponent's range kept; NaN and infinities stay."""
    finite = torch.where(values.isfinite(), values, 0.0)
    fraction, exponent = torch.frexp(finite)
    rounded = (fraction * 2.0**bits).round()
    wanted = exponent.to(torch.int64) - bits
    half = (
        wanted >> 1
    )  # in two steps: 2**wanted itself may be no number; only the second step can leave the normal range
    rounded = rounded * power_of_two(half) * power_of_two(wanted - half)
    return torch.where(values.isfinite(), rounded, values)


def lower_precision(problem: Problem, inputs: Tensors, axes: Axes) -> list[torch.Tensor]:
    """Outputs as the next lower precision would give them at best: floating-point inputs rounded to it, exact arithmetic, results rounded to it."""
    wide = {
        name: round_significand(tensor, LOWER_PRECISION[_format(inputs[name])])
        if tensor.is_floating_point()
        else tensor
        for name, tensor in widen(inputs).items()
    }
    with torch.no_grad():
        outputs = problem.reference(wide, axes)
    result = []
    for output, spec in zip(outputs, problem.outputs, strict=True):
        if spec.dtype in FORMATS:
            output = round_significand(output.double(), LOWER_PRECISION[spec.dtype])  # noqa: PLW2901
        result.append(output.to(TORCH_DTYPES[spec.dtype]).contiguous())
    return result


def _format(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def independent_axes(problem: Problem, inputs: Tensors, axes: Axes) -> frozenset[str]:
    """Axes along which outputs are computed one by one: the reference on inputs cut to the first half of the axis gives the first half of its outputs.

    Shortening such an axis changes no value, so results at audit lengths speak for the official ones there. An axis that occurs inside of a shape
    expression, in no output, or has fewer than two elements is never called independent.
    """
    wide = widen(inputs)
    with torch.no_grad():
        full = problem.reference(wide, axes)
    return frozenset(name for name in axes if _is_independent(problem, wide, axes, name, full))


def _is_independent(problem: Problem, wide: Tensors, axes: Axes, name: str, full: tuple[torch.Tensor, ...]) -> bool:
    half = axes[name] // 2
    shapes: Mapping[str, tuple[str | int, ...]] = {spec.name: spec.shape for spec in problem.tensors}
    everything = [*shapes.values(), *(spec.shape for spec in problem.outputs)]
    hidden = any(
        isinstance(entry, str) and entry != name and name in _names(entry) for shape in everything for entry in shape
    )
    if half < 1 or hidden or any(name not in spec.shape for spec in problem.outputs):
        return False
    if any(spec.domain.below == name for spec in problem.tensors):
        return False
    cut = {key: _cut(tensor, shapes[key], name, half) for key, tensor in wide.items()}
    try:
        with torch.no_grad():
            outputs = problem.reference(cut, {**axes, name: half})
    except (RuntimeError, ValueError, IndexError):
        return False
    for output, whole, spec in zip(outputs, full, problem.outputs, strict=True):
        part = _cut(whole, spec.shape, name, half)
        if output.shape != part.shape or not torch.allclose(output, part, rtol=1e-9, atol=1e-12, equal_nan=True):
            return False
    return True


def _names(expression: str) -> set[str]:
    import ast

    return {node.id for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Name)}


def _cut(tensor: torch.Tensor, shape: tuple[str | int, ...], name: str, length: int) -> torch.Tensor:
    for dim, entry in enumerate(shape):
        if entry == name:
            tensor = tensor.narrow(dim, 0, length)
    return tensor.contiguous()


def official_slice(
    problem: Problem, independent: Iterable[str], cost: Callable[[Axes], float], limit: float
) -> dict[str, int]:
    """Official axis lengths, with independent axes cut (the longest first, by halves, not below 1) until their cost is at most `limit`.

    Axes of kind reduction or group are never cut, even where a prefix of the output is independent of the rest (scans): its values are others. The cost may
    stay above the limit.
    """
    lengths = problem.official_axes()
    free = {name for name in independent if problem.axes[name].kind not in ("reduction", "group")}
    while free and cost(lengths) > limit:
        longest = max(sorted(free), key=lambda name: lengths[name])
        if lengths[longest] <= 1:
            break
        lengths[longest] = (lengths[longest] + 1) // 2
    return lengths
