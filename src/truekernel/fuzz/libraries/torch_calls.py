"""Calls of torch as data: arguments described, and made again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from truekernel.fuzz.libraries.torch_values import TORCH_TYPES, describe, make
from truekernel.fuzz.records import Call, Leaf, Named, Reference, Shared, TensorValue, Value

_FORMATS = {
    str(one).removeprefix("torch."): one
    for one in (torch.contiguous_format, torch.channels_last, torch.channels_last_3d, torch.preserve_format)
}
_LAYOUTS = {"strided": torch.strided}


class NoDescriptionError(ValueError):
    """An argument that JSON can't hold: a function, a sparse tensor, a generator."""


def described(operator: str, arguments: Sequence[Any], keywords: dict[str, Any]) -> Call:
    """A call as data. Raises NoDescriptionError for what can't be described."""
    return Call(
        operator,
        tuple(_described(value) for value in arguments),
        tuple((name, _described(value)) for name, value in sorted(keywords.items())),
    )


def _described(value: Any) -> Value:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, complex):
        return Named("complex", repr(value))
    if isinstance(value, torch.Tensor):
        found = describe(value)
        if found is None:
            raise NoDescriptionError(str(value.layout))
        return found
    if isinstance(value, tuple | list):
        return tuple(_described(part) for part in value)
    if isinstance(value, torch.dtype):
        return Named("dtype", str(value).removeprefix("torch."))
    if isinstance(value, torch.memory_format):
        return Named("memory_format", str(value).removeprefix("torch."))
    if isinstance(value, torch.layout) and value is torch.strided:
        return Named("layout", "strided")
    if isinstance(value, torch.device) and value.type == "cpu":
        return Named("device", "cpu")
    raise NoDescriptionError(type(value).__name__)


def named(value: Named) -> Any:
    """The object that a name stands for. Raises ValueError for an unknown one."""
    try:
        if value.kind == "dtype":
            return TORCH_TYPES[value.name]
        if value.kind == "memory_format":
            return _FORMATS[value.name]
        if value.kind == "layout":
            return _LAYOUTS[value.name]
        if value.kind == "device":
            return torch.device(value.name)
        if value.kind == "complex":
            return complex(value.name)
    except KeyError:
        pass
    raise ValueError(f"torch has no {value.kind} {value.name}")


Maker = Callable[[TensorValue], torch.Tensor]


def made(
    call: Call, results: Sequence[Any] = (), leaves: Sequence[Sequence[Any]] = (), maker: Maker = make
) -> tuple[tuple[Any, ...], dict[str, Any], list[Any]]:
    """(arguments, keywords, their leaves in order) of a call. `results`, `leaves`: those of the calls before it. Raises ValueError for what can't be made."""
    own: list[Any] = []
    every = [*leaves, own]

    def build(value: Value) -> Any:
        if isinstance(value, tuple):
            return [build(part) for part in value]
        leaf = _leaf(value, results, every, maker)
        own.append(leaf)
        return leaf

    arguments = tuple(build(value) for value in call.arguments)
    return arguments, {name: build(value) for name, value in call.keywords}, own


def _leaf(value: Leaf, results: Sequence[Any], leaves: Sequence[Sequence[Any]], maker: Maker) -> Any:
    if isinstance(value, TensorValue):
        return maker(value)
    if isinstance(value, Named):
        return named(value)
    if isinstance(value, Shared):
        try:
            return leaves[value.call][value.leaf]
        except IndexError:
            raise ValueError(f"call {value.call} has no argument {value.leaf} yet") from None
    if isinstance(value, Reference):
        tensors = tensors_of(results[value.call]) if value.call < len(results) else []
        if value.output >= len(tensors):
            raise ValueError(f"call {value.call} returned no tensor {value.output}")
        return tensors[value.output]
    return value


def tensors_of(result: Any) -> list[torch.Tensor]:
    """All tensors in what an operator returned, in order."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, tuple | list):
        return [tensor for part in result for tensor in tensors_of(part)]
    return []
