"""From a case to tensors."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import torch

from truekernel.cases.drawing import Drawing, WholeNumbers, drawing, shape_of
from truekernel.cases.grammar import OFFICIAL, Recipe, parse_recipe
from truekernel.cases.philox import words
from truekernel.cases.recipes import Draw, recipes
from truekernel.errors import BadInputError
from truekernel.model import Axes, Case, Domain, Problem, TensorSpec
from truekernel.numerics.formats import TORCH_DTYPES

BFLOAT16_NAN = 0x7FC0
"""The positive quiet NaN, as float32's is with its lower half cut off."""


def make_inputs(problem: Problem, case: Case, device: torch.device | str = "cpu") -> dict[str, torch.Tensor]:
    """All inputs and parameters of a case by name: contiguous tensors in their declared shapes and dtypes on `device`, the same bits everywhere.

    Values are made in float64, brought into the tensor's domain, and rounded once to float32 and then to a narrower dtype. For a CUDA device they are drawn there.
    Raises BadInputError when the recipe or a shape can't be read, or when the case belongs to another problem; MachineError for a CUDA device without cuda-core.
    """
    if case.problem != problem.name:
        raise BadInputError(f"case of problem '{case.problem}' can't be used for '{problem.name}'")
    recipe, axes = parse_recipe(case.recipe), case.lengths
    drawn = dataclasses.replace(recipe, factor=1.0, offset=0.0) if recipe.parameters else Recipe(OFFICIAL)
    plan = [(spec, recipe) for spec in problem.inputs] + [(spec, drawn) for spec in problem.parameters]
    place = torch.device(device)
    if place.type == "cpu":
        return {spec.name: draw_tensor(spec, axes, how, case.seed) for spec, how in plan}
    from truekernel.cases.device import torch_inputs

    maker = torch_inputs(place)
    return {spec.name: maker.tensor(spec, axes, how, case.seed) for spec, how in plan}


def draw_tensor(spec: TensorSpec, axes: Axes, recipe: Recipe, seed: int) -> torch.Tensor:
    """One tensor of a case on the CPU; see `drawing.drawing` for what becomes of factors and offsets that the domain has no room for."""
    shape = shape_of(spec, axes)
    count = math.prod(shape)
    if not count:
        return torch.empty(shape, dtype=TORCH_DTYPES[spec.dtype])
    wanted = drawing(spec, axes, recipe)
    if isinstance(wanted, WholeNumbers):
        return _whole_numbers(wanted, spec, seed, count).reshape(shape)
    tensor = torch.from_numpy(_values(wanted, Draw(count, seed, spec.name, spec.dtype)))
    if spec.dtype != "float64":
        tensor = tensor.to(torch.float32).to(TORCH_DTYPES[spec.dtype])
    if spec.dtype == "bfloat16" and spec.domain.nonfinite:
        # Which NaN torch makes depends on the processor; on some it has the bits of poison.
        tensor.view(torch.int16)[tensor.isnan()] = BFLOAT16_NAN
    return tensor.reshape(shape)


def _values(wanted: Drawing, draw: Draw) -> np.ndarray:
    values = recipes()[wanted.base].draw(draw)
    with np.errstate(under="ignore"):
        values = values * wanted.factor + wanted.offset
    if wanted.scaled is not None:
        scaled = values * wanted.scaled[0] + wanted.scaled[1]
        if _inside(scaled, wanted.domain):
            values = scaled
    return _into_domain(values, wanted.domain)


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


def _whole_numbers(wanted: WholeNumbers, spec: TensorSpec, seed: int, count: int) -> torch.Tensor:
    word = words(seed, f"{spec.name}/", count).astype(np.uint64)
    drawn = ((word * np.uint64(wanted.span)) >> np.uint64(32)).astype(np.int64) + wanted.low
    return torch.from_numpy(drawn).to(TORCH_DTYPES[spec.dtype])
