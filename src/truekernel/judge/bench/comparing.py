"""From times of process pairs to a verdict: a t-interval over the logarithms of their ratios.

The unit of repetition is the pair of fresh processes, since what differs from process to process (addresses, clocks, code placement) is what repeating within one would not show
(Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy import stats

from truekernel.errors import BadInputError

Word = Literal["FASTER", "SAME", "SLOWER", "AMBIGUOUS"]
MARGIN = 0.02
"""Smaller differences are the same to whoever chooses between kernels."""
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Comparison:
    """`ratio`: time of the baseline over that of the candidate, above 1 where the candidate is faster; `low`, `high`: 95 % interval over `pairs` pairs."""

    word: Word
    ratio: float
    low: float
    high: float
    pairs: int


def compare(log_ratios: Sequence[float], margin: float = MARGIN) -> Comparison:
    """The verdict on pairs, each the logarithm of the baseline's time over the candidate's.

    FASTER or SLOWER when the whole interval lies beyond the margin, SAME when it lies within, else AMBIGUOUS. Raises BadInputError for less than two pairs, or for what is no number.
    """
    if len(log_ratios) < 2:
        raise BadInputError(f"{len(log_ratios)} pair of processes: an interval needs 2 or more")
    if not all(math.isfinite(value) for value in log_ratios):
        raise BadInputError("a ratio of times is not finite: a time of zero was measured")
    count = len(log_ratios)
    mean = math.fsum(log_ratios) / count
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in log_ratios) / (count - 1))
    half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, count - 1)) * spread / math.sqrt(count)
    low, high, beyond = mean - half, mean + half, math.log1p(margin)
    word: Word = "AMBIGUOUS"
    if low > beyond:
        word = "FASTER"
    elif high < -beyond:
        word = "SLOWER"
    elif -beyond <= low and high <= beyond:
        word = "SAME"
    return Comparison(word, math.exp(mean), math.exp(low), math.exp(high), count)


def agree(device: float, wall: float) -> bool:
    """Whether two clocks tell the same time of a call, in seconds: work that escaped one of them would be missing there. Launches are counted by the host's clock only."""
    return abs(device - wall) <= max(0.05 * max(device, wall), 3e-6)
