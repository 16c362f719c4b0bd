"""What a case asks of one tensor, settled before anything is drawn; the same on every device."""

from __future__ import annotations

import math
from dataclasses import dataclass

from truekernel.cases.grammar import OFFICIAL, Recipe, parse_recipe
from truekernel.cases.recipes import recipes
from truekernel.errors import BadInputError
from truekernel.model import Axes, Domain, TensorSpec
from truekernel.model.lengths import evaluate, lengths
from truekernel.numerics.formats import FORMATS

INTEGER_REACH = 64
"""Integer tensors without bounds hold whole numbers of at most this size."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Values of a floating-point tensor: base * factor + offset, then, unless that leaves the domain, * scaled[0] + scaled[1], then brought into the domain.

    `scaled` is None where the recipe is not the official one.
    """

    base: str
    factor: float
    offset: float
    scaled: tuple[float, float] | None
    domain: Domain


@dataclass(frozen=True, slots=True)
class WholeNumbers:
    """Values of an integer tensor: uniform in [low, low + span)."""

    low: int
    span: int


def shape_of(spec: TensorSpec, axes: Axes) -> tuple[int, ...]:
    """The tensor's shape at these axis lengths."""
    return tuple(lengths(spec.shape, axes))


def drawing(spec: TensorSpec, axes: Axes, recipe: Recipe) -> Drawing | WholeNumbers:
    """How to draw a tensor. A factor or offset that the domain has no room for is fitted to it; where the base is "official", the tensor is left unscaled instead.

    Raises BadInputError where no value is legal.
    """
    if spec.domain.kind != "real" or spec.dtype not in FORMATS:
        return _whole_numbers(spec, axes)
    scaled = None
    if recipe.base == OFFICIAL:
        scaled = (recipe.factor, recipe.offset)
        drawn = parse_recipe(spec.official)
    else:
        drawn = _fitted(recipe, spec, axes)
    return Drawing(drawn.base, drawn.factor * _scale(spec, axes, drawn), drawn.offset, scaled, spec.domain)


def _scale(spec: TensorSpec, axes: Axes, recipe: Recipe) -> float:
    """The tensor's own scale; whole numbers and subnormals stay what they are."""
    return 1.0 if recipe.base in ("integers", "subnormal") else evaluate(spec.scale, axes)


def _fitted(recipe: Recipe, spec: TensorSpec, axes: Axes) -> Recipe:
    """The recipe with factor and offset halved until all values fit between the domain's bounds (a domain without negative numbers
    takes absolute values, so its lower bound does not count)."""
    bound = spec.domain.high if spec.domain.low >= 0 else min(spec.domain.high, -spec.domain.low)
    reach = recipes()[recipe.base].limit * _scale(spec, axes, recipe)
    if spec.dtype in FORMATS:
        bound = min(bound, FORMATS[spec.dtype].largest)
    factor, offset = recipe.factor, recipe.offset
    while (factor != 1 or offset != 0) and reach * abs(factor) + abs(offset) > bound:
        if abs(offset) >= reach * abs(factor) and offset != 0:
            offset = offset / 2 if abs(offset) > bound * 2.0**-20 else 0.0
        elif abs(factor) > 1:
            factor = math.copysign(max(abs(factor) / 2, 1.0), factor)
        else:
            break
    return Recipe(recipe.base, factor, offset, recipe.parameters)


def _whole_numbers(spec: TensorSpec, axes: Axes) -> WholeNumbers:
    """Indices, booleans and integers: uniform, whatever the recipe."""
    low, high = max(spec.domain.low, -INTEGER_REACH), min(spec.domain.high, INTEGER_REACH)
    if spec.domain.kind == "boolean":
        low, high = 0, 1
    elif spec.domain.kind == "index":
        low, high = 0, evaluate(str(spec.domain.below), axes) - 1
    elif spec.dtype == "uint8":
        low = max(low, 0)
    span = int(high) - int(low) + 1
    if span <= 0:
        raise BadInputError(f"input '{spec.name}' has no legal value at {dict(axes)}")
    return WholeNumbers(int(low), span)
