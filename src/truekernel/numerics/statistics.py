"""The named numbers from which judges decide. This text is their meaning; `native/statistics.h` is the fast copy that must agree.

All statistics of an execution run over all elements of all its outputs; `n` is their number. For an element, o is the output, r is `published`,
t is `truth`, s is `scale`, p is `spread` (0 when there is none), all taken to float64 unless said otherwise.

Error and its unit. For value, permutation, code and exact outputs: e = o - t, and ulp = spacing of the output's dtype at t (0 for integers). For index
outputs with a table: e = table[o] - table[t], ulp = 0; an index outside of the table has |e| = LIMIT. Elements whose class (NaN, +Inf, -Inf, finite)
differs between o and t (between table[o] and table[t]) are counted in `nonfinite` and have no error; equal non-finite elements have e = 0.
A ratio x/y is 0 when x = 0, and LIMIT when y = 0 < x or when it would exceed LIMIT.

- `mismatch:{atol}:{rtol}`: number of elements that torch.isclose(published, output, rtol, atol) refuses. The tolerance is relative to the *output*, since
  KernelBench calls torch.allclose(reference, candidate) (src/kernelbench/eval.py, run_and_check_correctness); the rounding is that of torch in the output's
  dtype. torch.allclose accepts exactly when this is 0.
- `flat`: least x such that |o - r| <= x + x|o| for all elements, the flat tolerance that the comparison above would need (in float64):
  max |o-r| / (1 + |o|); equal elements (infinities too) count 0, other non-finite ones LIMIT.
- `nonfinite`: number of elements whose class differs from that of the truth.
- `worst`: max |e| / s.
- `bound:{rho}`: max |e| / max(ulp, s, rho*p).
- `rms`: sqrt(sum z^2 / n), z = e/s cut to +-CUT.
- `bias`: sum(z * sign(t)) / sqrt(sum z^2) with sign(0) = +1, between -sqrt(n) and sqrt(n): errors that push all elements away from zero (+) or towards it (-)
  approach the ends, errors of random sign stay within a few units.
- `unwritten`: number of elements all of whose bytes are 0xFF, where those of r are not; 0 unless the buffer was filled with poison. (A NaN that was
  computed from poison can keep its bits and is counted too.)
- `elements`: n. `precision`: bits of the significand of the narrowest floating-point output (8, 11, 24 or 53), 0 when all outputs are integers.

An execution with no elements has 0 everywhere, `precision` apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from truekernel.model import Fill
from truekernel.numerics.expected import Expected
from truekernel.numerics.formats import FORMATS, poisoned, spacing, to_float64
from truekernel.numerics.names import RHO_LADDER, Tolerance, bound_name, mismatch_name, statistic_names

LIMIT = 1e300
"""Stands for an infinite ratio: stores and strict JSON hold finite numbers only."""
CUT = 1e6
"""Errors beyond this many scales no longer add to `rms` and `bias`, so that one wild element can't hide the rest."""


def statistics(
    outputs: Sequence[torch.Tensor],
    expected: Sequence[Expected],
    fill: Fill,
    tolerances: Sequence[Tolerance] = (),
    rhos: Sequence[float] = RHO_LADDER,
) -> dict[str, float]:
    """All statistics of one execution, by name (see the module's text).

    `outputs`: one tensor for each of `expected`, with its dtype and shape. `tolerances`: (atol, rtol) pairs.
    Raises ValueError when number, shape or dtype differ: the caller decides what such an output means.
    """
    _check(outputs, expected)
    result = dict.fromkeys(statistic_names(tolerances, rhos), 0.0)
    elements, squares, signed = 0, 0.0, 0.0
    precisions = [FORMATS[want.dtype].precision for want in expected if want.dtype in FORMATS]
    result["precision"] = float(min(precisions, default=0))
    for output, want in zip(outputs, expected, strict=True):
        if not want.elements:
            continue
        for atol, rtol in tolerances:
            close = torch.isclose(want.published, output, rtol=rtol, atol=atol)
            result[mismatch_name(atol, rtol)] += float(want.elements - int(close.sum()))
        result["flat"] = max(result["flat"], _flat(to_float64(output), to_float64(want.published)))
        if fill != "stale":
            result["unwritten"] += float(np.count_nonzero(poisoned(output) & ~poisoned(want.published)))
        error, unit, differs = errors(output, want)
        result["nonfinite"] += float(np.count_nonzero(differs))
        scale = to_float64(want.scale)
        result["worst"] = max(result["worst"], float(_ratio(np.abs(error), scale).max()))
        spread = to_float64(want.spread) if want.spread is not None else np.zeros(1)
        for rho in rhos:
            allowed = np.maximum(np.maximum(unit, scale), rho * spread)
            name = bound_name(rho)
            result[name] = max(result[name], float(_ratio(np.abs(error), allowed).max()))
        z = np.copysign(np.minimum(_ratio(np.abs(error), scale), CUT), error)
        elements += want.elements
        squares += float(np.sum(z * z))
        signed += float(np.sum(np.where(to_float64(want.truth) < 0, -z, z)))
    result["elements"] = float(elements)
    if squares > 0:
        result["rms"] = float(np.sqrt(squares / elements))
        result["bias"] = float(signed / np.sqrt(squares))
    return result


def _check(outputs: Sequence[torch.Tensor], expected: Sequence[Expected]) -> None:
    if len(outputs) != len(expected):
        raise ValueError(f"{len(outputs)} outputs, {len(expected)} expected")
    for output, want in zip(outputs, expected, strict=True):
        if output.dtype != want.published.dtype or tuple(output.shape) != want.shape:
            got = f"{output.dtype} {tuple(output.shape)}"
            raise ValueError(f"output '{want.name}' is {got}, expected {want.published.dtype} {want.shape}")


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """numerator/denominator for values >= 0, with the conventions of the module's text."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.minimum(numerator / denominator, LIMIT)
    return np.where(numerator == 0, 0.0, ratio)


def _flat(output: np.ndarray, published: np.ndarray) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        ratio = np.abs(output - published) / (1.0 + np.abs(output))
    finite = np.isfinite(output) & np.isfinite(published)
    ratio = np.where(finite, np.minimum(ratio, LIMIT), LIMIT)
    return float(np.where(output == published, 0.0, ratio).max())


def errors(output: torch.Tensor, want: Expected) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Flat float64 arrays: signed errors e, ulps, and (bool) the elements whose class differs; see the module's text. For CPU tensors."""
    error, unit, differs = (part.numpy() for part in error_tensors(output, want))
    return error, unit, differs


def error_tensors(output: torch.Tensor, want: Expected) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What `errors` gives, as tensors on the device of `output` and `want`."""
    got, truth = (part.detach().reshape(-1).to(torch.float64) for part in (output, want.truth))
    outside = torch.zeros_like(got, dtype=torch.bool)
    if want.kind == "index" and want.ties is not None:
        unit = torch.zeros_like(got)
        length = want.ties.shape[-1]
        table = want.ties.detach().reshape(got.numel(), length)
        outside = (got < 0) | (got >= length)
        got, truth = (
            table.gather(1, index.to(torch.int64)[:, None])[:, 0] for index in (torch.where(outside, 0.0, got), truth)
        )
    else:
        unit = spacing(truth, want.dtype)
    error = got - truth
    both_finite = got.isfinite() & truth.isfinite()
    same_class = both_finite | (got == truth) | (got.isnan() & truth.isnan())
    error = torch.where(both_finite, error.clamp(-LIMIT, LIMIT), 0.0)
    return error.masked_fill_(outside, LIMIT), unit, ~same_class & ~outside
