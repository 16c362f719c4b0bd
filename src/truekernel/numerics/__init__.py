"""Float64 references, error scales, statistics, float formats."""

from truekernel.numerics.error_scale import gathers
from truekernel.numerics.expected import Expected
from truekernel.numerics.gates import independent_axes, is_valid, lower_precision, official_slice
from truekernel.numerics.names import RHO_LADDER, Tolerance, bound_name, mismatch_name, statistic_names
from truekernel.numerics.panel import with_spread
from truekernel.numerics.reference import expect, published, widen
from truekernel.numerics.statistics import statistics
from truekernel.numerics.trivial import TRIVIAL, trivial_outputs

__all__ = [
    "RHO_LADDER",
    "TRIVIAL",
    "Expected",
    "Tolerance",
    "bound_name",
    "expect",
    "gathers",
    "independent_axes",
    "is_valid",
    "lower_precision",
    "mismatch_name",
    "official_slice",
    "published",
    "statistic_names",
    "statistics",
    "trivial_outputs",
    "widen",
    "with_spread",
]
