"""Our judge: float64 truth, a tolerance for each element, and tests on the distribution of errors.

An element may be off by C * max(1 ulp, error scale, RHO * spread of the honest panel): see `numerics.error_scale` for the scale and facts of its
choice. NaN and infinities must be where the float64 result has them. Cases of whole numbers (the suite has them for linear problems only) must be exact. Two tests
on the distribution see what a maximum can't: the root mean square of error/scale, and the mean error in one direction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from truekernel.checkers.checker import ACCEPT, Judgement, fault
from truekernel.model import Case, Execution
from truekernel.numerics import bound_name
from truekernel.numerics.statistics import LIMIT

RHO = 2.0
"""Margin on the honest panel's spread: a variant outside of the panel may be twice as far off."""
C = 5.0
"""Largest error in units of max(ulp, scale, RHO * spread). Honest programs, their rewrites and PyTorch itself stay below 3.4 on
all suites at audit sizes, most of them below 2.5."""
RMS = 2.5
"""Largest root mean square of error/scale; the scale is built as one standard deviation of honest arithmetic."""
MEAN = 1.5
"""Largest mean of error/scale in the direction of the truth's sign, over at least LEAST_ELEMENTS elements."""
LEAST_ELEMENTS = 256
"""Below so many elements the distribution says nothing that the maximum does not."""


def judge_bound(case: Case, executions: Sequence[Execution]) -> Judgement:
    """Accept when every execution keeps the bounds."""
    found = fault(executions)
    if found is not None:
        return found
    for execution in executions:
        why = refuse(case, execution.statistics)
        if why:
            return Judgement("reject", f"{why} ({execution.configuration.schedule} schedule)")
    return ACCEPT


def refuse(case: Case, statistics: Mapping[str, float]) -> str:
    """Why these statistics are out of bounds; empty when they are not."""
    if statistics["nonfinite"] > 0:
        return f"{statistics['nonfinite']:.0f} elements are NaN or infinite where the float64 result is not, or the reverse"
    if statistics["unwritten"] > 0:
        return f"{statistics['unwritten']:.0f} elements were never written"
    if case.recipe.startswith("integers") and statistics["worst"] > 0:
        return "a result on whole numbers is not exact"
    bound, rms, mean = measures(statistics)
    if bound > C:
        return f"an error is {bound:.3g} times what honest arithmetic may show, {C:g} is allowed"
    if rms > RMS:
        return f"the root mean square error is {rms:.3g} error scales, {RMS:g} is allowed"
    if mean > MEAN:
        return f"the mean error is {mean:.3g} error scales in one direction, {MEAN:g} is allowed"
    return ""


def measures(statistics: Mapping[str, float]) -> tuple[float, float, float]:
    """The bounded numbers: largest error over its bound, root mean square and mean of error/scale (0 over few elements).

    Where honest programs themselves stray beyond the scale (equal inputs round alike, so that errors of a sum add up), the spread widens the bound; the other two
    numbers are reduced in the same proportion.
    """
    bound, elements = statistics[bound_name(RHO)], statistics["elements"]
    if elements < LEAST_ELEMENTS:
        return bound, 0.0, 0.0
    alone = statistics[bound_name(0.0)]
    rms = statistics["rms"] * (bound / alone if alone > 0 else 1.0)
    return bound, rms, abs(statistics["bias"]) * rms / math.sqrt(elements)


def margin_bound(case: Case, statistics: Mapping[str, float]) -> float:
    """Largest share of an allowed number that is used; LIMIT where a class of fault has no allowance."""
    if refuse(case, {**statistics, bound_name(RHO): 0.0, "elements": 0.0}):
        return LIMIT
    bound, rms, mean = measures(statistics)
    return max(bound / C, rms / RMS, mean / MEAN)
