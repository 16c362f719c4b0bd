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
from truekernel.numerics.formats import FORMATS, TORCH_DTYPES

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
    plan = _plan(problem, recipe)
    place = torch.device(device)
    made = _made(problem, case, plan, place) if problem.make is not None else {}
    plan = [(spec, how) for spec, how in plan if spec.name not in made]
    if place.type == "cpu":
        drawn_ones = {spec.name: draw_tensor(spec, axes, how, case.seed) for spec, how in plan}
    else:
        from truekernel.cases.device import torch_inputs

        maker = torch_inputs(place)
        drawn_ones = {spec.name: maker.tensor(spec, axes, how, case.seed) for spec, how in plan}
    return {spec.name: (drawn_ones | made)[spec.name] for spec in problem.tensors}


def _plan(problem: Problem, recipe: Recipe) -> list[tuple[TensorSpec, Recipe]]:
    """What each tensor is drawn from."""
    if recipe.place is not None:
        floating = [spec.name for spec in problem.tensors if spec.dtype in FORMATS]
        pair = floating[:2] if recipe.place < 2 else []
        how = {name: Recipe(OFFICIAL if name in pair else "zeros") for name in floating}
        how |= dict.fromkeys(floating[recipe.place : recipe.place + 1], recipe)
        return [(spec, how.get(spec.name, Recipe(OFFICIAL))) for spec in problem.tensors]
    drawn = dataclasses.replace(recipe, factor=1.0, offset=0.0) if recipe.parameters else Recipe(OFFICIAL)
    return [(spec, recipe) for spec in problem.inputs] + [(spec, drawn) for spec in problem.parameters]


def _made(
    problem: Problem, case: Case, plan: list[tuple[TensorSpec, Recipe]], place: torch.device
) -> dict[str, torch.Tensor]:
    """Tensors that the problem computes from drawn ones. They are computed on the CPU: functions such as exp differ between devices.

    What they are computed from is drawn in the recipe of the case; a factor and an offset of "official" change the result instead, where the domain has room for it.
    """
    assert problem.make is not None
    recipe, axes = parse_recipe(case.recipe), case.lengths
    parameters = {spec.name for spec in problem.parameters}
    source = Recipe(OFFICIAL) if recipe.base == OFFICIAL or recipe.place is not None else recipe
    made = problem.make(axes, lambda spec: draw_tensor(spec, axes, source, case.seed))
    result = {}
    for spec, how in plan:
        if spec.name not in made:
            continue
        values = made[spec.name]
        if how.base == OFFICIAL and spec.name not in parameters and values.is_floating_point():
            scaled = values.double() * how.factor + how.offset
            if bool((scaled >= spec.domain.low).all() and (scaled <= spec.domain.high).all()):
                values = scaled.to(torch.float32)
        result[spec.name] = values.to(TORCH_DTYPES[spec.dtype]).contiguous().to(place)
    return result


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
