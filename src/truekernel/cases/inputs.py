"""From a case to tensors."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import torch

from truekernel.cases.grammar import OFFICIAL, Recipe, parse_recipe
from truekernel.cases.philox import words
from truekernel.cases.recipes import Draw, recipes
from truekernel.errors import BadInputError
from truekernel.model import Axes, Case, Domain, Problem, TensorSpec
from truekernel.model.lengths import evaluate, lengths
from truekernel.numerics.formats import FORMATS, TORCH_DTYPES

INTEGER_REACH = 64
"""Integer tensors without bounds hold whole numbers of at most this size."""


def make_inputs(problem: Problem, case: Case) -> dict[str, torch.Tensor]:
    """All inputs and parameters of a case by name: contiguous CPU tensors in their declared shapes and dtypes, the same bits everywhere.

    Values are made in float64, brought into the tensor's domain, and rounded once to float32 and then to a narrower dtype.
    Raises BadInputError when the recipe or a shape can't be read, or when the case belongs to another problem.
    """
    if case.problem != problem.name:
        raise BadInputError(f"case of problem '{case.problem}' can't be used for '{problem.name}'")
    recipe, axes = parse_recipe(case.recipe), case.lengths
    made = {spec.name: draw_tensor(spec, axes, recipe, case.seed) for spec in problem.inputs}
    for spec in problem.parameters:
        drawn = dataclasses.replace(recipe, factor=1.0, offset=0.0) if recipe.parameters else Recipe(OFFICIAL)
        made[spec.name] = draw_tensor(spec, axes, drawn, case.seed)
    return made


def draw_tensor(spec: TensorSpec, axes: Axes, recipe: Recipe, seed: int) -> torch.Tensor:
    """One tensor of a case. A factor or offset that the domain has no room for is fitted to it; where the base is "official", the tensor is
    left unscaled instead."""
    shape = lengths(spec.shape, axes)
    count = math.prod(shape)
    if not count:
        return torch.empty(shape, dtype=TORCH_DTYPES[spec.dtype])
    if spec.domain.kind != "real" or spec.dtype not in FORMATS:
        return _whole_numbers(spec, axes, seed, count).reshape(shape)
    if recipe.base == OFFICIAL:
        official = parse_recipe(spec.official)
        values = _values(spec, axes, official, seed, count)
        scaled = values * recipe.factor + recipe.offset
        if _inside(scaled, spec.domain):
            values = scaled
    else:
        values = _values(spec, axes, _fitted(recipe, spec, axes), seed, count)
    values = _into_domain(values, spec.domain)
    tensor = torch.from_numpy(values)
    if spec.dtype != "float64":
        tensor = tensor.to(torch.float32).to(TORCH_DTYPES[spec.dtype])
    return tensor.reshape(shape)


def _values(spec: TensorSpec, axes: Axes, recipe: Recipe, seed: int, count: int) -> np.ndarray:
    values = recipes()[recipe.base].draw(Draw(count, seed, spec.name, spec.dtype))
    factor = recipe.factor * _scale(spec, axes, recipe)
    with np.errstate(under="ignore"):
        return values * factor + recipe.offset


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


def _inside(values: np.ndarray, domain: Domain) -> bool:
    finite = values[np.isfinite(values)]
    return not finite.size or bool(finite.min() >= domain.low and finite.max() <= domain.high)


def _into_domain(values: np.ndarray, domain: Domain) -> np.ndarray:
    if not domain.nonfinite:
        values = np.where(np.isfinite(values), values, 0.0)
    if domain.low >= 0:
        values = np.abs(values)
    if domain.low > -math.inf or domain.high < math.inf:
        special = ~np.isfinite(values)
        values = np.where(special, values, np.clip(values, domain.low, domain.high))
    return values


def _whole_numbers(spec: TensorSpec, axes: Axes, seed: int, count: int) -> torch.Tensor:
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
    word = words(seed, f"{spec.name}/", count).astype(np.uint64)
    drawn = ((word * np.uint64(span)) >> np.uint64(32)).astype(np.int64) + int(low)
    return torch.from_numpy(drawn).to(TORCH_DTYPES[spec.dtype])
