"""Value recipes: how the elements of a tensor are drawn.

Only exactly rounded operations are used (integers, table look-ups, + - * / in float64, no fused multiply-add), so that every machine
makes the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from truekernel.cases.normal_table import CELLS, half_normal_quantiles
from truekernel.cases.philox import words
from truekernel.numerics.formats import FORMATS, FloatFormat


@dataclass(frozen=True, slots=True)
class Draw:
    """What a recipe may look at: `count` elements in row-major order, the seed, the tensor's name and its dtype."""

    count: int
    seed: int
    name: str
    dtype: str

    def words(self, purpose: str = "", count: int | None = None) -> np.ndarray:
        """32-bit words of this tensor's stream for a purpose."""
        return words(self.seed, f"{self.name}/{purpose}", self.count if count is None else count)


@dataclass(frozen=True, slots=True)
class ValueRecipe:
    """A base recipe. `draw` gives float64 values, one for each element. `limit`: bound of their absolute values, from which factors and
    offsets are fitted into a domain. `redraws_parameters`: parameters are drawn in the same way instead of officially."""

    name: str
    description: str
    draw: Callable[[Draw], np.ndarray]
    limit: float = 1.0
    redraws_parameters: bool = False


def _uniform(draw: Draw) -> np.ndarray:
    return (draw.words() >> np.uint32(8)) * 2.0**-24


def _signed(draw: Draw) -> np.ndarray:
    return (draw.words() >> np.uint32(8)) * 2.0**-23 - 1.0


def _normal(draw: Draw) -> np.ndarray:
    word = draw.words()
    knots = half_normal_quantiles()
    cell = (word >> np.uint32(1)) & np.uint32(CELLS - 1)
    fraction = (word >> np.uint32(11)) * 2.0**-21
    left = knots[cell]
    size = left + (knots[cell + 1] - left) * fraction
    return np.where(word & np.uint32(1), -size, size)


def _heavy(draw: Draw) -> np.ndarray:
    return _normal(draw) / ((draw.words("tail") >> np.uint32(8)) * 2.0**-24 + 2.0**-8)


def _sparse(draw: Draw) -> np.ndarray:
    return np.where(draw.words("mask") % np.uint32(5) == 0, _normal(draw), 0.0)


def _constant(draw: Draw) -> np.ndarray:
    return np.full(draw.count, (1 + int(draw.words(count=1)[0]) % 8) / 4)


def _ties(draw: Draw) -> np.ndarray:
    return (draw.words() % np.uint32(9)).astype(np.float64) / 4 - 1.0


def _integers(draw: Draw) -> np.ndarray:
    return (draw.words() % np.uint32(5)).astype(np.float64) - 2.0


def _near(draw: Draw) -> np.ndarray:
    form = FORMATS.get(draw.dtype, FORMATS["float32"])
    steps = (draw.words("near") % np.uint32(4)).astype(np.float64)
    return _ties(draw) * (1.0 + steps * 2.0 ** (1 - form.precision))


def _short(draw: Draw) -> np.ndarray:
    form = FORMATS.get(draw.dtype, FORMATS["float32"])
    # (1 + k s)^2 = 1 + 2 k s + k^2 s^2 with the spacing s; k^2 s is as near below 1 as can be.
    size = 1.0 + math.isqrt(2 ** (form.precision - 1) - 1) * 2.0 ** (1 - form.precision)
    return np.where(draw.words() & np.uint32(1), -size, size)


def _dust(draw: Draw) -> np.ndarray:
    form = FORMATS.get(draw.dtype, FORMATS["float32"])
    place = np.arange(draw.count)
    word = draw.words("dust")[place // 2 * 2]
    size = (word >> np.uint32(3)) % np.uint32(4) + 1.0
    coarse = np.where(place % 2, -size, size) / 4
    return np.where(word % np.uint32(8) == 0, coarse, -size * 2.0 ** (2 - 2 * form.precision))


def _decades(draw: Draw) -> np.ndarray:
    form = FORMATS.get(draw.dtype, FORMATS["float32"])
    word = draw.words("decade")
    exponents = np.where(word & np.uint32(1), 0, (word >> np.uint32(1)).astype(np.int64) % decades(form))
    return _normal(draw) * np.ldexp(1.0, -exponents)


def decades(form: FloatFormat) -> int:
    """Powers of two below 1 that a format has, subnormal numbers among them; at most what float64 scales by exactly."""
    return min(form.precision - form.least_exponent, 1023)


def _ramp(draw: Draw) -> np.ndarray:
    # Evenly spaced values would round alike in a running sum; the jitter makes rounding errors independent again.
    return (np.arange(draw.count) + _uniform(draw)) / max(draw.count, 1)


def _subnormal(draw: Draw) -> np.ndarray:
    form = FORMATS.get(draw.dtype, FORMATS["float32"])
    steps = 1 << (form.precision - 1)
    word = draw.words().astype(np.int64)
    return np.where(word & 1, -1.0, 1.0) * ((word >> 1) % (steps - 1) + 1) * form.least_subnormal


def _special(draw: Draw) -> np.ndarray:
    pick = draw.words("special") % np.uint32(96)
    values = _normal(draw)
    for number, special in enumerate((np.nan, np.inf, -np.inf)):
        values = np.where(pick == number, special, values)
    return values


def _ones(draw: Draw) -> np.ndarray:
    return np.ones(draw.count)


def _zeros(draw: Draw) -> np.ndarray:
    return np.zeros(draw.count)


@cache
def recipes() -> dict[str, ValueRecipe]:
    """All base recipes by name."""
    found = (
        ValueRecipe("uniform", "uniform in [0, 1), as torch.rand", _uniform),
        ValueRecipe("signed", "uniform in [-1, 1)", _signed),
        ValueRecipe("normal", "standard normal, cut at 4.5", _normal, limit=4.5),
        ValueRecipe("heavy", "heavy tails: a normal over a uniform, up to about 1000", _heavy, limit=1152.0),
        ValueRecipe("sparse", "80 % zeros, the rest normal", _sparse, limit=4.5),
        ValueRecipe("constant", "one value in all elements of a tensor", _constant, limit=2.0),
        ValueRecipe("ties", "nine distinct values from -1 to 1", _ties),
        ValueRecipe(
            "near", "nine distinct values from -1 to 1 and their next three neighbours away from zero", _near, 1.5
        ),
        ValueRecipe(
            "dust",
            "one in eight neighbouring pairs c and -c, the rest negative and so small that a sum rounded to nearest does not change, but one rounded toward zero does",
            _dust,
        ),
        ValueRecipe(
            "short",
            "one size, both signs; products of two fall just short of a number: next to no error when rounded to nearest, nearly a whole step toward zero",
            _short,
            1.25,
        ),
        ValueRecipe(
            "decades",
            "half of the elements normal, the rest normal over powers of two down to subnormal",
            _decades,
            4.5,
        ),
        ValueRecipe("integers", "whole numbers from -2 to 2, parameters too", _integers, 2.0, redraws_parameters=True),
        ValueRecipe("ramp", "increasing from 0 to 1 in memory order, unevenly", _ramp),
        ValueRecipe("subnormal", "subnormal numbers of the tensor's dtype, both signs", _subnormal),
        ValueRecipe(
            "special", "normal, with 1 % each of NaN, +Inf and -Inf where the problem defines them", _special, limit=4.5
        ),
        ValueRecipe("ones", "ones", _ones),
        ValueRecipe("zeros", "zeros", _zeros),
    )
    return {recipe.name: recipe for recipe in found}
