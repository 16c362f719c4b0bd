"""What samples of an operator have in common: forms, and which sizes change together.

A form is a way of calling an operator: the same arguments given, tensors of the same ranks. Over the samples of a form, positions (dimensions of tensors, and
whole numbers that name sizes) whose values always agree are one symbol: when it changes, all of them do. Tensors that share the dtype of the first
change it together. Whether a change is accepted is learned by trying (`validity`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from truekernel.fuzz.choices import MOST_ARGUMENTS, MOST_FORMS
from truekernel.fuzz.records import Call, Leaf, TensorValue, Value

Position = tuple[int, int]
"""(leaf, axis); axis -1: the leaf itself, a whole number."""

LEAST_LINKED = 4
"""A whole number that one sample alone gives is taken for a size only from here on: 1, 2 and 3 agree with some size by chance."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way of calling an operator. `number`: its place among the operator's forms, the most frequent first. `symbols`: positions that change together."""

    operator: str
    number: int
    samples: tuple[Call, ...]
    symbols: tuple[tuple[Position, ...], ...]


def forms_of(operator: str, samples: Iterable[Call]) -> list[Form]:
    """At most 48 forms, those with most samples first."""
    groups: dict[Any, list[Call]] = defaultdict(list)
    for call in samples:
        if len(call.leaves()) <= MOST_ARGUMENTS:
            groups[_structure(call)].append(call)
    ordered = sorted(groups.values(), key=len, reverse=True)[:MOST_FORMS]
    return [Form(operator, number, tuple(calls), _symbols(calls)) for number, calls in enumerate(ordered)]


def _structure(call: Call) -> Any:
    def of(value: Value) -> Any:
        if isinstance(value, tuple):
            return tuple(of(part) for part in value)
        if isinstance(value, TensorValue):
            return len(value.shape)
        return value if isinstance(value, str) else type(value).__name__

    return (tuple(of(value) for value in call.arguments), tuple((name, of(value)) for name, value in call.keywords))


def _symbols(calls: Sequence[Call]) -> tuple[tuple[Position, ...], ...]:
    values: dict[Position, list[int]] = defaultdict(list)
    for call in calls:
        for number, leaf in enumerate(call.leaves()):
            if isinstance(leaf, TensorValue):
                for axis, size in enumerate(leaf.shape):
                    values[number, axis].append(size)
            elif isinstance(leaf, int) and not isinstance(leaf, bool):
                values[number, -1].append(leaf)
    dimensions: dict[tuple[int, ...], list[Position]] = defaultdict(list)
    for position, column in values.items():
        if position[1] >= 0:
            dimensions[tuple(column)].append(position)
    for position, column in values.items():
        sizes = tuple(column)
        if position[1] < 0 and sizes in dimensions and (len(set(sizes)) > 1 or sizes[0] >= LEAST_LINKED):
            dimensions[sizes].append(position)
    return tuple(tuple(positions) for positions in dimensions.values())


def resized(leaves: list[Leaf], positions: Iterable[Position], size: int) -> None:
    """Give all positions of a symbol another size, in place. Literal data and bounds of index tensors are kept within the sizes by `bounded`."""
    for number, axis in positions:
        leaf = leaves[number]
        if axis < 0:
            leaves[number] = size
        elif isinstance(leaf, TensorValue):
            leaves[number] = replace(leaf, shape=(*leaf.shape[:axis], size, *leaf.shape[axis + 1 :]))


def bounded(before: Sequence[Leaf], after: list[Leaf]) -> None:
    """After sizes changed: index tensors must not point beyond the least size that the other tensors now have, if that is less than before."""
    grown = _sizes(after)
    if not grown or grown == _sizes(before):
        return
    least = min(grown)
    for number, leaf in enumerate(after):
        if isinstance(leaf, TensorValue) and leaf.values == "index" and leaf.bound > least > 0:
            data = leaf.data
            if data is not None:
                data = tuple(part if isinstance(part, bool | str) else min(part, least - 1) for part in data)
            after[number] = replace(leaf, bound=least, data=data)


def _sizes(leaves: Sequence[Leaf]) -> list[int]:
    return [size for leaf in leaves if isinstance(leaf, TensorValue) and leaf.values != "index" for size in leaf.shape]


def with_leaves(call: Call, leaves: Sequence[Leaf]) -> Call:
    """The call with other leaves, in the order of `Call.leaves`."""
    rest = iter(leaves)

    def rebuilt(value: Value) -> Value:
        return tuple(rebuilt(part) for part in value) if isinstance(value, tuple) else next(rest)

    arguments = tuple(rebuilt(value) for value in call.arguments)
    return replace(call, arguments=arguments, keywords=tuple((name, rebuilt(value)) for name, value in call.keywords))
