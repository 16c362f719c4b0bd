"""Programs of the corpus for problems of a checkout: our tensors and axes, the benchmark's reference and inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from truekernel.corpus.kernelbench.adapting import Adapted
from truekernel.corpus.kernelbench.reference import Draw
from truekernel.errors import BadInputError
from truekernel.model import Axes, Problem, Tensors, TensorSpec
from truekernel.model.lengths import evaluate, lengths

Shape = tuple[str | int, ...]


class NotBoundError(BadInputError):
    """A problem of the corpus is not the one of the checkout; the text says where they differ."""


def bind(ours: Problem, theirs: Adapted) -> Problem:
    """Our problem with the benchmark's reference and inputs: programs of ours run on it unchanged, the benchmark's own model is the truth.

    Tensors correspond in their order (inputs, then weights); dimensions of one are runs of dimensions of the other at official sizes. Names, axes, error scale and
    outputs are ours; reference, value recipes and scales are theirs. Raises NotBoundError when tensors or official sizes differ.
    """
    mine, other = ours.tensors, theirs.problem.tensors
    if len(mine) != len(other) or len(ours.outputs) != len(theirs.problem.outputs):
        raise NotBoundError(
            f"'{ours.name}' takes {_named(mine)}, {theirs.file.id} takes {_named(other)}: they are not the same problem"
        )
    at, there = ours.official_axes(), theirs.problem.official_axes()
    shapes = [_aligned(a, b, at, there, theirs.file.id) for a, b in zip(mine, other, strict=True)]
    for a, b in zip(ours.outputs, theirs.problem.outputs, strict=True):
        if _count(a.shape, at) != _count(b.shape, there):
            raise NotBoundError(
                f"output '{a.name}' of '{ours.name}' has the official size {lengths(a.shape, at)}, that of {theirs.file.id} {lengths(b.shape, there)}"
            )
    constants: dict[str, str] = {}
    for spec, shape in zip(other, shapes, strict=True):
        for entry, expression in zip(spec.shape, shape, strict=True):
            if isinstance(entry, str) and entry in theirs.problem.axes:
                constants.setdefault(entry, str(expression))
    link = Link(ours, theirs.problem, tuple(constants.items()), tuple(shapes))
    specs = {a.name: _recipe_of(a, b) for a, b in zip(mine, other, strict=True)}
    return replace(
        ours,
        reference=link,
        inputs=tuple(specs[spec.name] for spec in ours.inputs),
        parameters=tuple(specs[spec.name] for spec in ours.parameters),
        make=link.make if theirs.problem.make is not None else None,
        source=f"{theirs.problem.source}; bound to '{ours.name}'",
    )


@dataclass(frozen=True, slots=True)
class Link:
    """The benchmark's reference in our terms. `constants`: its axes as expressions over ours; `shapes`: those of its tensors, too."""

    ours: Problem
    theirs: Problem
    constants: tuple[tuple[str, str], ...]
    shapes: tuple[Shape, ...]

    def __call__(self, inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
        """Outputs in our shapes and in the dtype of the inputs."""
        given = {
            spec.name: inputs[mine.name].reshape(lengths(shape, axes))
            for mine, spec, shape in zip(self.ours.tensors, self.theirs.tensors, self.shapes, strict=True)
        }
        outputs = self.theirs.reference(given, self.their_axes(axes))
        return tuple(
            output.reshape(lengths(spec.shape, axes)) for output, spec in zip(outputs, self.ours.outputs, strict=True)
        )

    def make(self, axes: Axes, draw: Draw) -> dict[str, torch.Tensor]:
        """The benchmark's derived tensors under our names and in our shapes."""
        assert self.theirs.make is not None
        made = self.theirs.make(self.their_axes(axes), draw)
        return {
            mine.name: made[spec.name].reshape(lengths(mine.shape, axes))
            for mine, spec in zip(self.ours.tensors, self.theirs.tensors, strict=True)
            if spec.name in made
        }

    def their_axes(self, axes: Axes) -> dict[str, int]:
        """Values of the benchmark's constants at our axes."""
        return {name: int(evaluate(expression, axes)) for name, expression in self.constants}


def verify(bound: Problem, ours: Problem, inputs: Tensors, axes: Axes) -> None:
    """Raise NotBoundError unless the benchmark's reference and ours agree on these inputs, in float64 and to 1e-9."""
    wide = {name: value.double() if value.is_floating_point() else value for name, value in inputs.items()}
    try:
        with torch.no_grad():
            pairs = list(zip(bound.reference(wide, axes), ours.reference(wide, axes), strict=True))
    except Exception as error:
        raise NotBoundError(
            f"the reference of {ours.kernelbench} fails on inputs of '{ours.name}': {' '.join(str(error).split())}"
        ) from None
    for (theirs, mine), spec in zip(pairs, ours.outputs, strict=True):
        if not torch.allclose(theirs.double(), mine.double(), rtol=1e-9, atol=1e-9, equal_nan=True):
            worst = float((theirs.double() - mine.double()).abs().max())
            raise NotBoundError(
                f"'{ours.name}' and {ours.kernelbench} compute different things: '{spec.name}' differs by up to {worst:.3g} in float64"
            )


def _aligned(mine: TensorSpec, other: TensorSpec, at: Axes, there: Axes, file: str) -> Shape:
    """The shape of their tensor over our axes: one of their dimensions for one or several of ours, or several for one of ours."""
    a, b = lengths(mine.shape, at), lengths(other.shape, there)
    result: list[str | int] = []
    i = j = 0
    while j < len(b):
        group_i, group_j, left, right = [i], [j], (a[i] if i < len(a) else 1), b[j]
        i, j = i + 1, j + 1
        while left != right:
            if left < right and i < len(a):
                left *= a[i]
                group_i.append(i)
                i += 1
            elif right < left and j < len(b):
                right *= b[j]
                group_j.append(j)
                j += 1
            else:
                raise NotBoundError(f"'{mine.name}' has the official size {a}, '{other.name}' of {file} {b}")
        entries = [mine.shape[k] for k in group_i if k < len(a)]
        if len(group_j) > 1 and len(entries) > 1:
            raise NotBoundError(f"'{mine.name}' {a} and '{other.name}' {b} of {file} split their elements differently")
        result += [1] * (len(group_j) - 1) + [_times(entries)]
    if _count(mine.shape, at) != _count(other.shape, there):
        raise NotBoundError(f"'{mine.name}' has the official size {a}, '{other.name}' of {file} {b}")
    return tuple(result)


def _times(entries: Sequence[str | int]) -> str | int:
    if len(entries) == 1:
        return entries[0]
    return " * ".join(f"({entry})" for entry in entries) if entries else 1


def _count(shape: Shape, axes: Axes) -> int:
    count = 1
    for length in lengths(shape, axes):
        count *= length
    return count


def _recipe_of(mine: TensorSpec, other: TensorSpec) -> TensorSpec:
    """Our tensor, drawn as theirs."""
    if mine.domain.kind != "real" or other.domain.kind != "real":
        if mine.domain.kind != other.domain.kind:
            raise NotBoundError(
                f"'{mine.name}' holds {mine.domain.kind} values, '{other.name}' {other.domain.kind} ones"
            )
        return mine
    return replace(mine, official=other.official, scale=other.scale)


def _named(specs: Sequence[TensorSpec]) -> str:
    return ", ".join(f"{spec.name} {list(spec.shape)}" for spec in specs)


def bound_problems(
    ours: Mapping[str, Problem], adapted: Mapping[str, Adapted]
) -> tuple[dict[str, Problem], dict[str, str]]:
    """Our problems that state a problem of the checkout, bound to it; and for those that can't be, why."""
    bound: dict[str, Problem] = {}
    failed: dict[str, str] = {}
    for name, problem in ours.items():
        if problem.kernelbench not in adapted:
            continue
        try:
            bound[name] = bind(problem, adapted[problem.kernelbench])
        except NotBoundError as error:
            failed[name] = str(error)
    return bound, failed
