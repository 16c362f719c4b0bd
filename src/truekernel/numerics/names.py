"""Names of the statistics, and the numbers that stand in them. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable

RHO_LADDER: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Multiples of the honest spread for which `bound` is kept."""
PLAIN: tuple[str, ...] = ("flat", "nonfinite", "worst", "rms", "bias", "unwritten", "elements", "precision")

Tolerance = tuple[float, float]


def mismatch_name(atol: float, rtol: float) -> str:
    """Name of the statistic for torch.allclose(..., atol=atol, rtol=rtol): "mismatch:0.01:0.01"."""
    return f"mismatch:{atol:g}:{rtol:g}"


def bound_name(rho: float) -> str:
    """Name of the statistic for a multiple of the honest spread: "bound:4"."""
    return f"bound:{rho:g}"


def statistic_names(tolerances: Iterable[Tolerance] = (), rhos: Iterable[float] = RHO_LADDER) -> tuple[str, ...]:
    """All names that `statistics` returns, in the order in which the native copies write them."""
    mismatches = tuple(mismatch_name(atol, rtol) for atol, rtol in tolerances)
    return PLAIN + mismatches + tuple(bound_name(rho) for rho in rhos)
