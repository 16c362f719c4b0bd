"""Runs a Python candidate: `python python_child.py REQUESTS ANSWERS SHARED`, three descriptors.

It makes tensors of the shared file's memory, calls the candidate, and sends what came back. Checks of types, strides and aliases are made here, where a candidate can falsify
them; nothing rests on them but reasons to refuse. What counts are the bytes that leave, which the judge compares elsewhere.
"""

from __future__ import annotations

import importlib.util
import mmap
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_HERE = str(Path(__file__).parent)
sys.path.insert(0, _HERE)
import state  # noqa: E402
import wire  # noqa: E402

sys.path.remove(_HERE)

import torch  # noqa: E402

PLACE = Path("/tmp/candidate.py")
Request = dict[str, Any]


class Host:
    """The candidate as loaded, and its model for the present weights."""

    def __init__(self, shared: int) -> None:
        self._shared = shared
        self._map: mmap.mmap | None = None
        self._module: Any = None
        self._callable: Any = None
        self._form = ""

    def open(self, request: Request) -> Request:
        """Import the candidate's file and find what is to be called."""
        PLACE.write_text(request["text"], encoding="utf-8")
        spec = importlib.util.spec_from_file_location("candidate", PLACE)
        assert spec is not None and spec.loader is not None
        self._module = importlib.util.module_from_spec(spec)
        sys.modules["candidate"] = self._module
        spec.loader.exec_module(self._module)
        self._form = request["form"]
        found: Any = self._module
        for part in request["attribute"].split("."):
            found = getattr(found, part)
        self._callable = found
        return {"threads": torch.get_num_threads(), "state": state.snapshot()}

    def make(self, request: Request) -> Request:
        """A new model with the weights of a case; for a function there is none. `init`: arguments of the model."""
        if self._form == "function":
            return {}
        model = type.__call__(getattr(self._module, "ModelNew"), *_arguments(request["init"], []))  # noqa: B009
        weights = [(name, tensor) for name, tensor in self._tensors(request["weights"])]
        with torch.no_grad():
            placed = _place(model, weights)
        if placed:
            return {"misplaced": placed}
        self._callable = model
        return {}

    def call(self, request: Request) -> tuple[Request, list[memoryview]]:
        """Call it once."""
        tensors = [tensor for _, tensor in self._tensors(request["tensors"])]
        result = self._callable(*_arguments(request["arguments"], tensors))
        outputs = list(result) if type(result) in (tuple, list) else [result]
        told: list[Request] = []
        data: list[memoryview] = []
        for number, output in enumerate(outputs):
            told.append(_described(output, tensors, outputs[:number]))
        wanted = [(dtype, tuple(shape)) for dtype, shape in request["outputs"]]
        if [(one["dtype"], tuple(one["shape"])) for one in told] != wanted:
            return {"outputs": told, "data": False}, []
        for output in outputs:
            data.append(_raw(output))
        return {"outputs": told, "data": True}, data

    def _tensors(self, specs: Sequence[Any]) -> list[tuple[str, torch.Tensor]]:
        """Tensors over the shared memory, from (name, dtype, shape, offset)."""
        size = os.fstat(self._shared).st_size
        if self._map is None or len(self._map) < size:
            # The old map stays while tensors of earlier calls use it.
            self._map = mmap.mmap(self._shared, size)
        found = []
        for name, dtype, shape, offset in specs:
            kind = getattr(torch, dtype)
            if wire.size_of(dtype, shape):
                count = wire.size_of(dtype, shape) // wire.ITEM_BYTES[dtype]
                tensor = torch.frombuffer(self._map, dtype=kind, count=count, offset=offset).reshape(shape)
            else:
                tensor = torch.empty(shape, dtype=kind)
            found.append((name, tensor))
        return found


def _arguments(given: Sequence[Any], tensors: Sequence[torch.Tensor]) -> list[Any]:
    """Arguments from data: {"tensor": place} or {"tuple": [...]}, and plain values."""
    found: list[Any] = []
    for value in given:
        if isinstance(value, dict) and "tensor" in value:
            found.append(tensors[value["tensor"]])
        elif isinstance(value, dict) and "tuple" in value:
            found.append(tuple(_arguments(value["tuple"], tensors)))
        elif isinstance(value, list):
            found.append(_arguments(value, tensors))
        else:
            found.append(value)
    return found


def _place(model: Any, weights: Sequence[tuple[str, torch.Tensor]]) -> str:
    """Copy the weights into a model: by name where all names and shapes agree, else in order where the shapes do. Returns why neither works."""
    own = {**dict(model.named_buffers()), **dict(model.named_parameters())}
    parameters = list(model.parameters())
    if all(name in own and own[name].shape == tensor.shape for name, tensor in weights):
        for name, tensor in weights:
            own[name].data.copy_(tensor)
        return ""
    if [p.shape for p in parameters] == [tensor.shape for _, tensor in weights]:
        for parameter, (_, tensor) in zip(parameters, weights, strict=True):
            parameter.data.copy_(tensor)
        return ""
    wanted = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in weights)
    has = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in own.items()) or "none"
    return wire.safe_text(f"weights {wanted} have no place in ModelNew, whose parameters are {has}")


def _described(output: Any, inputs: Sequence[torch.Tensor], earlier: Sequence[Any]) -> Request:
    if type(output) not in (torch.Tensor, torch.nn.Parameter):
        return {
            "type": wire.safe_text(type(output).__name__, 80),
            "dtype": "",
            "shape": [],
            "contiguous": False,
            "alias": "",
        }
    alias = ""
    start, end = _span(output)
    for kind, others in (("an input", inputs), ("another output", earlier)):
        for other in others:
            first, last = _span(other)
            if start < last and first < end:
                alias = kind
    return {
        "type": "Tensor",
        "dtype": str(output.dtype).removeprefix("torch."),
        "shape": list(output.shape),
        "contiguous": output.is_contiguous(),
        "alias": alias,
        "device": output.device.type,
    }


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _raw(output: torch.Tensor) -> memoryview:
    flat = output.detach().contiguous().reshape(-1)
    data: Any = flat.view(torch.uint8).numpy() if flat.numel() else b""
    return memoryview(data)


def main() -> None:
    """Answer requests until there are no more."""
    requests, answers, shared = (int(word) for word in sys.argv[1:4])
    host = Host(shared)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    with torch.no_grad():
        while True:
            try:
                request = wire.read_message(requests)
            except EOFError:
                os._exit(0)
            header: Request
            data: list[memoryview] = []
            try:
                match request["op"]:
                    case "ready" | "state":
                        header = {"state": state.snapshot()}
                    case "open":
                        header = host.open(request)
                    case "make":
                        header = host.make(request)
                    case _:
                        header, data = host.call(request)
            except BaseException as error:
                header, data = {"raised": wire.raised(error)}, []
            wire.write_all(answers, [wire.message({"number": request["number"], **header}), *data])


if __name__ == "__main__":
    main()
