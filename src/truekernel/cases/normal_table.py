"""Quantiles of the half-normal distribution, computed with + - * / alone so that every machine gets the same bits."""

from __future__ import annotations

from functools import cache

import numpy as np

CELLS = 1024
"""Cells of equal probability; inside a cell the quantile is taken as linear."""
LAST = 4.5
"""Outer end of the last cell, which holds what lies beyond 3.3 standard deviations (0.1 %)."""


@cache
def half_normal_quantiles() -> np.ndarray:
    """Float64 array of CELLS + 1 knots z_j with P(|Z| < z_j) = j / CELLS for a standard normal Z; the last one is LAST.

    Newton's method on the power series of the distribution function (Abramowitz and Stegun 26.2.11), all terms positive.
    """
    wanted = np.arange(CELLS) / CELLS
    z = np.zeros(CELLS)
    sqrt_half_pi = 1.2533141373155003
    for _ in range(60):
        series, exponential = _series(z)
        # P(|Z| < z) = sqrt(2/pi) exp(-z^2/2) (z + z^3/3 + z^5/15 + ...), its derivative is sqrt(2/pi) exp(-z^2/2).
        step = wanted * sqrt_half_pi * exponential - series
        z = np.minimum(np.maximum(z + np.minimum(step, 0.25), 0.0), LAST)
    return np.concatenate([z, [LAST]])


def _series(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    square = z * z
    half = square * 0.5
    series, term = z.copy(), z.copy()
    exponential, power = np.ones_like(z), np.ones_like(z)
    for k in range(1, 90):
        term = term * square / (2 * k + 1)
        series = series + term
        power = power * half / k
        exponential = exponential + power
    return series, exponential
