"""Two results of the same call: do they agree within what is honest?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from truekernel.fuzz.oracles.bounds import UNITS, Bound
from truekernel.fuzz.oracles.closeness import close

QUICK = 8.0
"""Roundoffs that need no bound to be allowed."""
OUT_OF_RANGE = {torch.float16: 1e3}
"""Magnitudes from which intermediate results may overflow; 1e30 for other dtypes."""


def disagreement(
    one: Sequence[torch.Tensor], other: Sequence[torch.Tensor], limits: Callable[[], list[Bound]]
) -> str | None:
    """What is wrong with `other` against `one`, or None. `limits` is asked only for results that differ by more than a few roundings; where it raises, nothing is said."""
    if len(one) != len(other):
        return f"outputs: {len(one)} against {len(other)}"
    doubtful = []
    for place, (a, b) in enumerate(zip(one, other, strict=True)):
        if a.shape != b.shape:
            return f"shape of output {place}: {tuple(a.shape)} against {tuple(b.shape)}"
        if a.dtype != b.dtype:
            return f"dtype of output {place}: {a.dtype} against {b.dtype}"
        if not _close(a, b, QUICK * UNITS.get(a.dtype, 0.0)).all():
            doubtful.append(place)
    if not doubtful:
        return None
    bound = limits()
    for place in doubtful:
        found = beyond(one[place], other[place], bound[place], place)
        if found:
            return found
    return None


def beyond(
    a: torch.Tensor, b: torch.Tensor, bound: Bound, place: int = 0, dtype: torch.dtype | None = None
) -> str | None:
    """The element of `b` that is farthest from `a` beyond the bound, as text; None where all are within, or so near that a script would pass. `dtype`: what `b` had before it was widened."""
    if bound.allowed.shape != a.shape:
        return None
    said = bound.allowed.isfinite()
    if a.dtype.is_floating_point or a.dtype.is_complex:
        said &= (bound.truth.abs() < OUT_OF_RANGE.get(a.dtype, 1e30)) | ~bound.truth.isfinite()
        wide = torch.complex128 if a.dtype.is_complex else torch.float64
        left, right = a.to(wide), b.to(wide)
        classes = (left.isnan() != right.isnan()) | (left.isinf() != right.isinf())
        gap = (left - right).abs().nan_to_num_(nan=0.0, posinf=torch.inf)
        gap = torch.where(left == right, 0.0, gap)
        wrong = said & (classes | (gap > 2 * bound.allowed))
        kind = "class of values" if bool((wrong & classes).any()) else "values"
    else:
        gap = (a != b).double()
        wrong = said & (a != b)
        classes = torch.zeros_like(wrong)
        kind = "whole numbers"
    if not wrong.any() or close(a, torch.where(wrong, b, a).to(dtype or b.dtype)):
        return None
    ratio = torch.where(wrong, torch.where(classes, torch.inf, gap / bound.allowed.clamp_min(1e-300)), -1.0).reshape(-1)
    worst = int(ratio.argmax())
    values = [_shown(part.reshape(-1)[worst]) for part in (a, b, bound.truth)]
    return f"{kind} of output {place}: {values[0]} against {values[1]} (float64: {values[2]}) at element {worst}; {int(wrong.sum())} of {a.numel()} elements differ"


def _shown(value: torch.Tensor) -> str:
    number = value.item()
    return f"{number:.9g}" if isinstance(number, float | complex) else str(number)


def _close(a: torch.Tensor, b: torch.Tensor, relative: float) -> torch.Tensor:
    same = (a == b) | (a.isnan() & b.isnan())
    if relative == 0.0 or bool(same.all()):
        return same
    wide = torch.complex128 if a.dtype.is_complex else torch.float64
    left, right = a.to(wide), b.to(wide)
    near = (left - right).abs() <= relative * torch.maximum(left.abs(), right.abs())
    return same | (near & left.isfinite() & right.isfinite())
