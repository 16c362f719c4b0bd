"""Run a problem file's own model on given tensors, and its own code on drawn numbers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from truekernel.corpus.kernelbench.description import Description, TensorFound
from truekernel.corpus.kernelbench.module_text import namespace, whole_constants
from truekernel.corpus.kernelbench.recording import Recorder, key
from truekernel.errors import BadInputError
from truekernel.model import Axes, Domain, Tensors, TensorSpec

Draw = Callable[[TensorSpec], torch.Tensor]
Lengths = tuple[tuple[str, int], ...]
_PATCHING = threading.Lock()


@dataclass(frozen=True, slots=True)
class FileReference:
    """The forward of a problem file as a reference: weights come from the inputs, buffers from the file, and the model is in training mode, as where the benchmark calls it.

    `derived`: tensors that the file's own code makes from drawn numbers. The file was run in a process of its own before; here it is run in ours.
    """

    path: Path
    found: Description
    derived: tuple[str, ...] = ()

    def __call__(self, inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
        """Outputs in the dtype of the inputs; booleans as uint8."""
        return tuple(part.to(torch.uint8) if part.dtype == torch.bool else part for part in self._outputs(inputs, axes))

    def ties(self, inputs: Tensors, axes: Axes) -> torch.Tensor:
        """What the last argmax or argmin chose from, float64, with the axis that its output indexes last."""
        with Recorder() as recorder:
            outputs = self._outputs(inputs, axes)
        chosen = next(o for o, spec in zip(outputs, self.found.outputs, strict=True) if spec.chosen_by)
        _, (source, *rest) = recorder.last[key(chosen)]
        table = source.double()
        dim = rest[0] if rest else None
        table = table.reshape(-1) if dim is None else table.movedim(dim, -1)
        return table.reshape(*chosen.shape, table.shape[-1]).contiguous()

    def make(self, axes: Axes, draw: Draw) -> dict[str, torch.Tensor]:
        """The derived tensors, from the file's own code with `draw` in the place of PyTorch's generator."""
        wanted = set(self.derived)
        names = _namespace(str(self.path), self._lengths(axes))
        made: dict[str, torch.Tensor] = {}
        with torch.no_grad():
            if any(tensor.name in wanted for tensor in self.found.inputs):
                with _Redraw(draw, "get_inputs"):
                    given = [value for value in names["get_inputs"]() if isinstance(value, torch.Tensor)]
                made |= {tensor.name: value for tensor, value in zip(self.found.inputs, given, strict=True)}
            if any(tensor.name in wanted for tensor in self.found.parameters):
                with _Redraw(draw, "Model"):
                    model = names["Model"](*names["get_init_inputs"]())
                made |= {name: value.detach() for name, value in model.named_parameters()}
        return {name: value.contiguous() for name, value in made.items() if name in wanted}

    def _outputs(self, inputs: Tensors, axes: Axes) -> list[torch.Tensor]:
        model = _model(str(self.path), self._lengths(axes))
        weights = {tensor.name: inputs[tensor.name] for tensor in self.found.parameters}
        floats = [value for value in inputs.values() if value.is_floating_point()]
        kind = floats[0] if floats else torch.empty(0)
        buffers = {
            name: buffer.to(kind.device, kind.dtype if buffer.is_floating_point() else None, copy=True)
            for name, buffer in model.named_buffers()
        }
        result = torch.func.functional_call(model, {**weights, **buffers}, tuple(self._arguments(inputs)))
        return list(result) if isinstance(result, tuple | list) else [result]

    def _arguments(self, inputs: Tensors) -> Iterator[Any]:
        tensors = iter(self.found.inputs)
        for place in range(len(self.found.inputs) + len(self.found.literals)):
            if place in self.found.literals:
                yield self.found.literals[place]
            else:
                yield self._argument(next(tensors), inputs)

    def _argument(self, found: TensorFound, inputs: Tensors) -> torch.Tensor:
        value = inputs[found.name]
        if found.dtype == "bool":
            return value.to(torch.bool)
        return value.clone() if self.found.writes_inputs else value

    def _lengths(self, axes: Axes) -> Lengths:
        """The constants that differ from the file's."""
        known = {constant.name: constant.value for constant in self.found.constants}
        return tuple(sorted((name, length) for name, length in axes.items() if known.get(name, length) != length))


@lru_cache(maxsize=64)
def _namespace(path: str, lengths: Lengths) -> dict[str, Any]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"can't read {path}: {error.strerror}") from None
    unknown = {name for name, _ in lengths} - set(whole_constants(text))
    if unknown:
        raise BadInputError(f"{path} has no constant '{min(unknown)}': it has changed since it was read")
    return namespace(text, path, dict(lengths))


@lru_cache(maxsize=16)
def _model(path: str, lengths: Lengths) -> Any:
    names = _namespace(path, lengths)
    with torch.no_grad(), _weightless():
        return names["Model"](*names["get_init_inputs"]())


@contextmanager
def _weightless() -> Iterator[None]:
    """Modules that are made here keep shapes of parameters only (on the meta device); their buffers are real."""
    module = torch.nn.Module
    register = module.register_parameter

    def without_data(self: Any, name: str, param: Any) -> None:
        if param is not None and not param.is_meta:
            param = torch.nn.Parameter(param.detach().to("meta"), requires_grad=param.requires_grad)
        register(self, name, param)

    with _PATCHING:
        module.register_parameter = without_data  # type: ignore[method-assign]
        try:
            yield
        finally:
            module.register_parameter = register  # type: ignore[method-assign]


class _Redraw(TorchDispatchMode):
    """Puts other numbers in the place of random ones: the n-th draw is the tensor that `draw` makes for a spec named after it."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here."""
        return False

    def __init__(self, draw: Draw, prefix: str) -> None:
        super().__init__()
        self._draw, self._prefix, self._number = draw, prefix, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.__name__.split(".")[0]
        given = {argument.name: value for argument, value in zip(func._schema.arguments, args, strict=False)} | kwargs
        if name in ("rand", "randn", "rand_like", "randn_like"):
            shape = tuple(given["size"]) if "size" in given else tuple(args[0].shape)
            return self._numbers(shape, "normal" if name.startswith("randn") else "uniform").to(given.get("dtype"))
        if name == "randint":
            low, high = int(given.get("low", 0)), int(given["high"])
            spec = TensorSpec(self._name(), tuple(given["size"]), "int64", Domain(kind="index", below=str(high - low)))
            return (self._draw(spec) + low).to(given.get("dtype") or torch.int64)
        if name == "uniform_":
            low, high = given.get("from", 0.0), given.get("to", 1.0)
            return args[0].copy_(self._numbers(tuple(args[0].shape), "uniform") * (high - low) + low)
        if name == "normal_":
            numbers = self._numbers(tuple(args[0].shape), "normal")
            return args[0].copy_(numbers * given.get("std", 1.0) + given.get("mean", 0.0))
        return func(*args, **kwargs)

    def _numbers(self, shape: tuple[int, ...], official: str) -> torch.Tensor:
        return self._draw(TensorSpec(self._name(), shape, official=official))

    def _name(self) -> str:
        self._number += 1
        return f"{self._prefix}/{self._number}"
