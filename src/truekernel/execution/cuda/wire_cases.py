"""Cases as messages to a worker: launch plans as JSON, tensors as contents that are named by their hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from truekernel.errors import BadInputError
from truekernel.execution.scalars import pack
from truekernel.model import BufferArg, Launch, LaunchPlan
from truekernel.numerics.expected import Expected
from truekernel.numerics.formats import DTYPE_NAMES


@dataclass(frozen=True, slots=True)
class CaseMessage:
    """A case as a worker receives it, and the contents that it needs there."""

    message: dict[str, Any]
    contents: Mapping[str, memoryview | bytes]


def case_message(
    key: str,
    plan: LaunchPlan,
    inputs: Mapping[str, torch.Tensor],
    stale: Sequence[torch.Tensor] | None,
    mutates: Sequence[str],
    expected: Sequence[Expected] | None = None,
) -> CaseMessage:
    """The message {"ask": "case", key, buffers, launches, outputs, references}.

    A buffer: name, nbytes, role (input = nothing may write it; mutable; empty; zeros), content (of input and mutable), stale (of empty,
    when known). An argument: ["buffer", number, offset in bytes] or ["scalar", its bytes in hexadecimal].
    `references`: for each output what it is compared with, as contents; none without `expected`.
    Raises BadInputError when tensors do not fit the plan.
    """
    contents: dict[str, memoryview | bytes] = {}
    leftovers = _stale_bytes(plan, stale)
    message = plan_message(key, plan, mutates)
    for number, (spec, entry) in enumerate(zip(plan.buffers, message["buffers"], strict=True)):
        if spec.init == "input":
            entry["content"] = _keep_tensor(contents, _checked(spec.name, inputs, spec.dtype, spec.elements), number)
        elif number in leftovers:
            entry["stale"] = _keep(contents, leftovers[number])
    message["references"] = [_reference(want, contents) for want in expected or ()]
    return CaseMessage(message, contents)


def plan_message(key: str, plan: LaunchPlan, mutates: Sequence[str] = ()) -> dict[str, Any]:
    """The message of `case_message` without contents."""
    buffers = []
    for number, spec in enumerate(plan.buffers):
        written = spec.init == "input" and (number in plan.outputs or spec.name in mutates)
        buffers.append({"name": spec.name, "nbytes": spec.nbytes, "role": "mutable" if written else spec.init})
    return {
        "ask": "case",
        "key": key,
        "buffers": buffers,
        "launches": [_launch(launch) for launch in plan.launches],
        "outputs": list(plan.outputs),
        "references": [],
    }


def _reference(want: Expected, contents: dict[str, memoryview | bytes]) -> dict[str, Any]:
    table = want.ties if want.kind == "index" else None
    wide = {"truth": want.truth, "scale": want.scale, "spread": want.spread, "ties": table}
    return {
        "dtype": want.dtype,
        "kind": want.kind,
        "elements": want.elements,
        "ties_length": int(table.shape[-1]) if table is not None else 0,
        "published": _keep_tensor(contents, want.published),
        **{
            name: None if tensor is None else _keep_tensor(contents, tensor.to(torch.float64))
            for name, tensor in wide.items()
        },
    }


def check_expected(plan: LaunchPlan, expected: Sequence[Expected]) -> None:
    """Raises BadInputError when references do not fit the plan's outputs."""
    if len(expected) != len(plan.outputs):
        raise BadInputError(f"{len(expected)} expected outputs for a plan with {len(plan.outputs)}")
    for buffer, want in zip(plan.outputs, expected, strict=True):
        spec = plan.buffers[buffer]
        if want.elements != spec.elements or want.dtype != spec.dtype:
            raise BadInputError(
                f"expected '{want.name}' has {want.elements} elements of {want.dtype}, the plan {spec.elements} of {spec.dtype}"
            )


def tensor_bytes(tensor: torch.Tensor) -> memoryview | bytes:
    """Bytes of a tensor in row-major order, without a copy where it is contiguous and on the CPU."""
    flat = tensor.detach().cpu().contiguous().view(-1)
    return flat.view(torch.uint8).numpy().data if flat.numel() else b""


def content_name(data: memoryview | bytes) -> str:
    """Name of a content: a hash of its bytes. (That of an input goes on with a colon and the number of its buffer, which tells what its red zones hold.)"""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


_NAMED: MutableMapping[torch.Tensor, tuple[str, memoryview | bytes]] = WeakIdKeyDictionary()
"""Names and bytes of tensors that were seen: they don't change, and each launch plan of a problem has the same ones."""


def _keep_tensor(contents: dict[str, memoryview | bytes], tensor: torch.Tensor, buffer: int | None = None) -> str:
    if tensor not in _NAMED:
        data = tensor_bytes(tensor)
        _NAMED[tensor] = content_name(data), data
    name, contents_of = _NAMED[tensor]
    if buffer is not None:
        name = f"{name}:{buffer}"
    contents[name] = contents_of
    return name


def _keep(contents: dict[str, memoryview | bytes], data: memoryview | bytes) -> str:
    name = content_name(data)
    contents[name] = data
    return name


def _checked(name: str, inputs: Mapping[str, torch.Tensor], dtype: str, elements: int) -> torch.Tensor:
    tensor = inputs.get(name)
    if tensor is None:
        raise BadInputError(f"no input '{name}': given are {', '.join(inputs) or 'none'}")
    if DTYPE_NAMES.get(tensor.dtype) != dtype or tensor.numel() != elements:
        raise BadInputError(
            f"input '{name}' has {tensor.numel()} elements of {tensor.dtype}, wanted {elements} of {dtype}"
        )
    return tensor


def _stale_bytes(plan: LaunchPlan, stale: Sequence[torch.Tensor] | None) -> dict[int, memoryview | bytes]:
    """Contents that an allocator would have left in empty buffers: an output's own, else those of the outputs one after the other."""
    if stale is None:
        return {}
    if len(stale) != len(plan.outputs):
        raise BadInputError(f"{len(stale)} stale tensors for a plan with {len(plan.outputs)} outputs")
    own = {buffer: tensor_bytes(t) for buffer, t in zip(plan.outputs, stale, strict=True)}
    leftovers = b"".join(own.values()) if len(own) > 1 else next(iter(own.values()), b"")
    found: dict[int, memoryview | bytes] = {}
    for number, spec in enumerate(plan.buffers):
        data = own.get(number, leftovers)
        if spec.init == "empty" and spec.nbytes and len(data):
            found[number] = data if len(data) <= spec.nbytes else data[: spec.nbytes]
    return found


def _launch(launch: Launch) -> dict[str, Any]:
    return {
        "kernel": launch.kernel,
        "grid": list(launch.grid),
        "block": list(launch.block),
        "args": [
            ["buffer", a.buffer, a.offset] if isinstance(a, BufferArg) else ["scalar", pack(a.value, a.ctype).hex()]
            for a in launch.args
        ],
        "shared": launch.shared,
        "cooperative": launch.cooperative,
        "stream": launch.stream,
    }
