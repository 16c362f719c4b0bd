"""Float64 references, error scales, statistics, float formats."""

from truekernel.numerics.expected import Expected
from truekernel.numerics.panel import with_spread
from truekernel.numerics.reference import expect, published, widen
from truekernel.numerics.statistics import (
    RHO_LADDER,
    Tolerance,
    bound_name,
    mismatch_name,
    statistic_names,
    statistics,
)

__all__ = [
    "RHO_LADDER",
    "Expected",
    "Tolerance",
    "bound_name",
    "expect",
    "mismatch_name",
    "published",
    "statistic_names",
    "statistics",
    "widen",
    "with_spread",
]
