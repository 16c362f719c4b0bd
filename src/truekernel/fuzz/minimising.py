"""Smaller cases: fewer calls, plainer tensors, simpler numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from truekernel.fuzz.forms import with_leaves
from truekernel.fuzz.records import Call, Leaf, Reference, Shared, TensorValue, TestCase


def candidates(case: TestCase) -> Iterator[TestCase]:
    """Cases that are one step smaller, the largest steps first. Each is valid as data; whether it still fails is for the caller to see."""
    count = len(case.calls)
    for number in range(count):
        if count > 1:
            kept = _without_call(case, number)
            if kept is not None:
                yield kept
    for number, call in enumerate(case.calls):
        for smaller in _calls(call):
            yield replace(case, calls=(*case.calls[:number], smaller, *case.calls[number + 1 :]))


def _without_call(case: TestCase, number: int) -> TestCase | None:
    """The case without a call that no later one refers to."""
    rest: list[Call] = []
    for place, call in enumerate(case.calls):
        if place == number:
            continue
        leaves = call.leaves()
        for slot, leaf in enumerate(leaves):
            if isinstance(leaf, Reference | Shared):
                if leaf.call == number and place > number:
                    return None
                if leaf.call > number:
                    leaves[slot] = replace(leaf, call=leaf.call - 1)
        rest.append(with_leaves(call, leaves))
    return replace(case, calls=tuple(rest))


def _calls(call: Call) -> Iterator[Call]:
    if call.repeat > 1:
        yield replace(call, repeat=1)
    for place in range(len(call.keywords)):
        yield replace(call, keywords=(*call.keywords[:place], *call.keywords[place + 1 :]))
    if call.arguments and not isinstance(call.arguments[-1], TensorValue):
        yield replace(call, arguments=call.arguments[:-1])
    for place, value in enumerate(call.arguments):
        if isinstance(value, tuple) and len(value) > 1:
            yield replace(call, arguments=(*call.arguments[:place], value[:-1], *call.arguments[place + 1 :]))
    leaves = call.leaves()
    yield from _sizes(call, leaves)
    for slot, leaf in enumerate(leaves):
        for simpler in _leaves(leaf):
            changed: list[Leaf] = [*leaves[:slot], simpler, *leaves[slot + 1 :]]
            yield with_leaves(call, changed)


def _sizes(call: Call, leaves: list[Leaf]) -> Iterator[Call]:
    """A size made smaller in all tensors at once, since sizes must often agree."""
    sizes = sorted(
        {size for leaf in leaves if isinstance(leaf, TensorValue) for size in leaf.shape if size > 1}, reverse=True
    )
    for size in sizes:
        for less in dict.fromkeys((1, 2, size // 2, size - 1)):
            if less < size:
                changed: list[Leaf] = [
                    replace(leaf, shape=tuple(less if one == size else one for one in leaf.shape))
                    if isinstance(leaf, TensorValue)
                    else leaf
                    for leaf in leaves
                ]
                yield with_leaves(call, changed)
                numbers = [
                    less if isinstance(leaf, int) and not isinstance(leaf, bool) and leaf == size else leaf
                    for leaf in changed
                ]
                if numbers != changed:
                    yield with_leaves(call, numbers)


def _leaves(leaf: Leaf) -> Iterator[Leaf]:
    if isinstance(leaf, TensorValue):
        yield from _tensors(leaf)
    elif isinstance(leaf, bool):
        if leaf:
            yield False
    elif isinstance(leaf, int):
        for less in dict.fromkeys((0, 1, -1, 2, leaf // 2)):
            if abs(less) < abs(leaf):
                yield less
    elif isinstance(leaf, float):
        yield from (simple for simple in (0.0, 1.0) if simple != leaf and leaf not in (0.0,))


def _tensors(value: TensorValue) -> Iterator[TensorValue]:
    if value.layout != "contiguous":
        yield replace(value, layout="contiguous")
    if value.gradient:
        yield replace(value, gradient=False)
    if value.dtype not in ("float32", "int64", "bool", "complex64"):
        yield replace(
            value, dtype="float32" if "float" in value.dtype else "complex64" if "complex" in value.dtype else "int64"
        )
    simple = ("zeros", "ones", "normal")
    if value.data is None:
        for recipe in simple[: simple.index(value.values) if value.values in simple else 3]:
            yield replace(value, values=recipe)
    elif any(part != 0 for part in value.data):
        yield replace(value, values="zeros", data=None)
    if len(value.shape) > 1 and 1 in value.shape:
        place = value.shape.index(1)
        yield replace(value, shape=(*value.shape[:place], *value.shape[place + 1 :]))
    for axis, size in enumerate(value.shape):
        for less in dict.fromkeys((1, 2, size // 2, size - 1)):
            if 0 < less < size:
                yield replace(value, shape=(*value.shape[:axis], less, *value.shape[axis + 1 :]))
    if value.seed:
        yield replace(value, seed=0)


def plainest(case: TestCase, literal: Callable[[TensorValue], TensorValue]) -> TestCase:
    """The case with the values of small tensors written out."""
    calls = []
    for call in case.calls:
        leaves: list[Leaf] = [
            literal(leaf) if isinstance(leaf, TensorValue) and leaf.values not in ("zeros", "ones") else leaf
            for leaf in call.leaves()
        ]
        calls.append(with_leaves(call, leaves))
    return replace(case, calls=tuple(calls))
