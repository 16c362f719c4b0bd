"""Rates with their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

Z95 = 1.959963984540054


def wilson(hits: float, n: float) -> tuple[float, float]:
    """95 % interval of a proportion (Wilson, JASA 22, 1927). `hits` and `n` may be fractional: a mutant shared by two rules counts half for each.
    (0, 1) when n is 0."""
    if n <= 0:
        return 0.0, 1.0
    p = hits / n
    centre = (p + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 * math.sqrt(p * (1 - p) / n + Z95**2 / (4 * n * n)) / (1 + Z95**2 / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def cluster_bootstrap(
    clusters: Mapping[str, tuple[float, float]], *, draws: int = 2000, seed: int = 0
) -> tuple[float, float] | None:
    """95 % percentile interval of sum(hits) / sum(n) when whole clusters (problems) are drawn with replacement.

    Mutants of one problem share their fate, so an interval that treats them as independent is too narrow. `clusters`: name -> (hits, n).
    None with fewer than two clusters that have n > 0.
    """
    table = np.array([clusters[name] for name in sorted(clusters) if clusters[name][1] > 0], dtype=np.float64)
    if len(table) < 2:
        return None
    rng = np.random.Generator(np.random.Philox(seed))
    drawn = table[rng.integers(0, len(table), size=(draws, len(table)))].sum(axis=1)
    low, high = np.percentile(drawn[:, 0] / drawn[:, 1], [2.5, 97.5])
    return float(low), float(high)


def settling(
    hits: Sequence[bool], *, draws: int = 200, seed: int = 0, least: int = 25
) -> list[tuple[int, float, float, float]]:
    """How a rate settles as the sample grows: (n, mean, low, high) over random samples of doubling size, drawn with replacement; last the rate itself."""
    values = np.asarray(hits, dtype=np.float64)
    rng = np.random.Generator(np.random.Philox(seed))
    points = []
    n = least
    while n < len(values):
        means = np.array([values[rng.integers(0, len(values), n)].mean() for _ in range(draws)])
        low, high = np.percentile(means, [2.5, 97.5])
        points.append((n, float(means.mean()), float(low), float(high)))
        n *= 2
    if len(values):
        rate = float(values.mean())
        points.append((len(values), rate, *wilson(float(values.sum()), len(values))))
    return points


def two_factor_split(base: float, first: float, second: float, both: float) -> dict[str, tuple[float, float, float]]:
    """Split of the change from `base` to `both` into two factors: for each (alone, last, mean of the two orders = Shapley value).

    `first`/`second`: the figure when only that factor has changed (Shapley, Contributions to the Theory of Games II, 1953).
    """
    return {
        "first": (first - base, both - second, (first - base + both - second) / 2),
        "second": (second - base, both - first, (second - base + both - first) / 2),
    }
