"""How the tensors of a problem file are made: which random numbers they hold, and what was done to them since."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from truekernel.corpus.kernelbench.description import Made

RANDOM = frozenset(
    {
        *("rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson", "native_dropout"),
        *(
            "rand_like",
            "randn_like",
            "randint_like",
            "uniform",
            "exponential",
            "rrelu_with_noise",
            "geometric",
            "cauchy",
        ),
        *("uniform_", "normal_", "random_", "bernoulli_", "exponential_", "log_normal_", "geometric_", "cauchy_"),
        *("rrelu_with_noise_functional", "_fused_dropout", "_standard_gamma", "_sample_dirichlet", "binomial"),
    }
)
"""Operators that draw from a generator."""
CONSTANTS = {
    "zeros": 0.0,
    "zeros_like": 0.0,
    "zero_": 0.0,
    "ones": 1.0,
    "ones_like": 1.0,
    "new_zeros": 0.0,
    "new_ones": 1.0,
}
KEEP = frozenset({"_to_copy", "clone", "contiguous", "detach", "lift_fresh", "alias", "copy"})
AFFINE = frozenset({"mul", "add", "sub", "div", "neg", "rsub"})


@dataclass(frozen=True, slots=True)
class Drawn:
    """One random draw: its operator, and shape and distribution of what it made."""

    operator: str
    shape: tuple[int, ...]
    made: Made


class Recorder(TorchDispatchMode):
    """Notes for each storage how its values were made. `draws`: random draws in order; `written`: storages that an operator changed in
    place; `last`: for each storage the operator that made it, with its arguments; `operations`: arithmetic operations so far; `count`: operators so far."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here; torch's default would import torch._dynamo, which takes seconds."""
        return False

    def __init__(self) -> None:
        super().__init__()
        self.draws: list[Drawn] = []
        self.operations = 0.0
        self.count = 0
        self.written: set[int] = set()
        self.last: dict[int, tuple[str, tuple[Any, ...]]] = {}
        self._made: dict[int, Made] = {}
        self._origin: dict[int, int] = {}
        self._alive: list[Any] = []

    def made(self, tensor: torch.Tensor) -> Made:
        """How a tensor's values were made."""
        return self._made.get(key(tensor), Made(by="other", what="nothing that was seen"))

    def origin(self, tensor: torch.Tensor) -> int | None:
        """Number of the draw that a tensor's values come from; None when they are no draw's."""
        return self._origin.get(key(tensor))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = func.__name__.split(".")[0]
        self.count += 1
        if func.is_view:
            return result
        self.operations += operations(name, args, result)
        if not isinstance(result, torch.Tensor):
            for part in result if isinstance(result, tuple | list) else ():
                self._note(part, name, args, Made(by="other", what=name))
            if name in RANDOM:
                self.draws.append(Drawn(name, (), Made(by="other", what=name)))
            return result
        in_place = func._schema.is_mutable and bool(args) and isinstance(args[0], torch.Tensor)
        if in_place:
            self.written.add(key(args[0]))
        before = self.origin(args[0]) if args and isinstance(args[0], torch.Tensor) else None
        made = self._how(func, name, args, kwargs, result, in_place)
        self._note(result, name, args, made)
        self._origin.pop(key(result), None)
        if name in RANDOM:
            self._origin[key(result)] = len(self.draws)
            self.draws.append(Drawn(name, tuple(result.shape), made))
        elif before is not None and made.by != "other":
            self._origin[key(result)] = before
        return result

    def _note(self, result: Any, name: str, args: tuple[Any, ...], made: Made) -> None:
        if isinstance(result, torch.Tensor):
            self._alive.append(result)  # a freed storage's place would be used again
            self._made[key(result)] = made
            self.last[key(result)] = (name, args)

    def _how(self, func: Any, name: str, args: Any, kwargs: Any, result: torch.Tensor, in_place: bool) -> Made:
        if in_place and result.numel() * result.element_size() != result.untyped_storage().nbytes():
            return Made(by="other", what=f"{name} on a part")
        if name in ("rand", "rand_like"):
            return Made(by="uniform", low=0.0, high=1.0)
        if name in ("randn", "randn_like"):
            return Made(by="normal", mean=0.0, deviation=1.0)
        if name in ("randint", "randint_like"):
            return self._integers(func, args)
        if name in ("uniform_", "normal_"):
            schema = [argument.name for argument in func._schema.arguments]
            given = {"from": 0.0, "to": 1.0, "mean": 0.0, "std": 1.0, **dict(zip(schema, args, strict=False)), **kwargs}
            if name == "uniform_":
                return Made(by="uniform", low=float(given["from"]), high=float(given["to"]))
            return Made(by="normal", mean=float(given["mean"]), deviation=float(given["std"]))
        if name in CONSTANTS:
            return Made(by="constant", value=CONSTANTS[name])
        if name in ("fill_", "full", "full_like", "scalar_tensor"):
            value = args[0] if name == "scalar_tensor" else args[1]
            return Made(by="constant", value=float(value)) if isinstance(value, int | float) else _other(name)
        if name in ("copy_",) and isinstance(args[1], torch.Tensor):
            return self.made(args[1])
        if name in KEEP and args and isinstance(args[0], torch.Tensor):
            return self.made(args[0])
        if name.rstrip("_") in AFFINE and args and isinstance(args[0], torch.Tensor):
            return _moved(self.made(args[0]), name.rstrip("_"), args[1:], kwargs) or _other(name)
        return _other(name)

    def _integers(self, func: Any, args: Any) -> Made:
        names = [argument.name for argument in func._schema.arguments]
        given = dict(zip(names, args, strict=False))
        return Made(by="integers", low=float(given.get("low", 0)), high=float(given["high"]))


def key(tensor: torch.Tensor) -> int:
    """Identity of a tensor's storage."""
    return int(tensor.untyped_storage()._cdata)


def operations(name: str, args: tuple[Any, ...], result: Any) -> float:
    """Arithmetic operations of one operator: two for each term of a product of matrices or a convolution, one an element of the larger of first argument and
    result for all others."""
    first = result[0] if isinstance(result, tuple | list) and result else result
    if not isinstance(first, torch.Tensor):
        return 0.0
    tensors = [argument for argument in args if isinstance(argument, torch.Tensor)]
    if name in ("mm", "bmm", "addmm", "baddbmm", "addmv", "mv", "dot") and tensors:
        inner = tensors[-2].shape[-1] if len(tensors) > 1 else 1
        return 2.0 * first.numel() * inner
    if name == "convolution":
        source, weight, transposed = args[0], args[1], args[6]
        outer = source.numel() if transposed else first.numel()
        return 2.0 * outer * (weight.numel() // max(weight.shape[0], 1))
    return float(max([first.numel(), *(tensor.numel() for tensor in tensors[:1])]))


def _other(name: str) -> Made:
    return Made(by="other", what=name)


def _moved(made: Made, name: str, rest: tuple[Any, ...], kwargs: Any) -> Made | None:
    """Uniform, normal or constant values after an operation with a number; None for anything else."""
    number = rest[0] if rest else 1
    if not isinstance(number, int | float) or kwargs or len(rest) > 1:
        return None
    if name == "div" and not number:
        return None
    factor, offset = {
        "mul": (number, 0.0),
        "div": (1 / number if number else 0.0, 0.0),
        "add": (1.0, number),
        "sub": (1.0, -number),
        "neg": (-1.0, 0.0),
        "rsub": (-1.0, number),
    }[name]
    match made.by:
        case "uniform":
            ends = made.low * factor + offset, made.high * factor + offset
            return Made(by="uniform", low=min(ends), high=max(ends))
        case "normal":
            return Made(by="normal", mean=made.mean * factor + offset, deviation=abs(made.deviation * factor))
        case "constant":
            return Made(by="constant", value=made.value * factor + offset)
    return None
