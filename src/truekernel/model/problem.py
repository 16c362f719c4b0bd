"""What must be computed: named axes, tensors, and a reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch

AxisKind = Literal["batch", "feature", "reduction", "spatial", "group"]
DType = Literal["float32", "float16", "bfloat16", "float64", "int32", "int64", "uint8"]
OutputKind = Literal["value", "index", "permutation", "code", "exact"]
Axes = Mapping[str, int]
Tensors = Mapping[str, "torch.Tensor"]

FAMILIES = (
    "elementwise",
    "activation",
    "reduction",
    "arg_reduction",
    "scan",
    "normalisation",
    "softmax",
    "matmul",
    "convolution",
    "pooling",
    "loss",
    "attention",
)


@dataclass(frozen=True, slots=True)
class AxisSpec:
    """One named axis. `official`: the length that a benchmark uses; `audit`: the length for measurements without a GPU;
    `odd`: other legal lengths that are worth a case (one, primes, tile-1, tile+1, 0 where an empty tensor is legal)."""

    official: int
    audit: int
    kind: AxisKind
    odd: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Domain:
    """Values that are legal in a tensor. `low`/`high` are inclusive bounds of real values; an `index` is an integer in
    [0, length of axis `below`); `nonfinite`: NaN and infinities are legal and the problem defines what they give."""

    low: float = float("-inf")
    high: float = float("inf")
    kind: Literal["real", "index", "boolean"] = "real"
    below: str | None = None
    nonfinite: bool = False

    def holds(self, values: torch.Tensor) -> bool:
        """Whether all real values are legal; those of other kinds are taken to be."""
        if self.kind != "real" or not values.is_floating_point():
            return True
        finite = values.isfinite()
        inside = (values >= self.low) & (values <= self.high)
        return bool((inside | (~finite & self.nonfinite)).all() and (finite | self.nonfinite).all())


REAL = Domain()


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """An input. `shape` entries are axis lengths: an axis name or an arithmetic expression over axis names ("H - K + 1").

    `official`: name of the value recipe that a benchmark would draw from (torch.rand: "uniform"); `scale`: an expression over the axes
    and sqrt() that multiplies it ("1/sqrt(K)"), as weight initialisers do.
    """

    name: str
    shape: tuple[str | int, ...]
    dtype: DType = "float32"
    domain: Domain = REAL
    official: str = "uniform"
    scale: str = "1"


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """An output. `kind`: value = compared within a tolerance; index = right when the value that it points at
    ties with the best (see `Problem.ties`); permutation, code (one step at rounding ties) and exact are compared element by element."""

    name: str
    shape: tuple[str | int, ...]
    dtype: DType = "float32"
    kind: OutputKind = "value"


Reference = Callable[[Tensors, Axes], "tuple[torch.Tensor, ...]"]


@dataclass(frozen=True, slots=True)
class Problem:
    """What must be computed.

    `reference(inputs, axes)` is pure torch, keeps to the dtype of its inputs (float64 inputs give a float64 result) and returns one tensor for
    each of `outputs`. `error_scale(inputs, axes)`: absolute error that honest float32 arithmetic may show, per output element, float64; None = the
    default of `numerics`. `ties(inputs, axes)`: for index outputs, the float64 table [..., L] whose last axis the output indexes.
    `flops`/`bytes`: arithmetic operations and least memory traffic, for the physical floor. `linear`: exact small-integer inputs
    give exactly representable results in any summation order, so those cases are compared bitwise.
    `kernelbench`: level and number of the problem of KernelBench that it corresponds to ("level1/23"). `make(axes, draw)`: tensors that are computed from drawn ones
    (probabilities by a softmax, a triangle of a matrix); `draw(spec)` draws in the recipe of the case.
    `parameters` are inputs too (weights); checkers that only rescale inputs leave them alone. `mutates`: inputs that a program writes in place.
    """

    name: str
    family: str
    summary: str
    axes: Mapping[str, AxisSpec]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[OutputSpec, ...]
    reference: Reference
    flops: Callable[[Axes], float]
    bytes: Callable[[Axes], float]
    parameters: tuple[TensorSpec, ...] = ()
    mutates: tuple[str, ...] = ()
    error_scale: Reference | None = None
    ties: Callable[[Tensors, Axes], torch.Tensor] | None = None
    linear: bool = False
    source: str = ""
    constants: Mapping[str, float] = field(default_factory=dict)
    kernelbench: str = ""
    make: Callable[[Axes, Callable[[TensorSpec], torch.Tensor]], Tensors] | None = None

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """Inputs, then parameters: everything that a program receives."""
        return self.inputs + self.parameters

    def audit_axes(self) -> dict[str, int]:
        """Axis lengths for measurements without a GPU."""
        return {name: axis.audit for name, axis in self.axes.items()}

    def official_axes(self) -> dict[str, int]:
        """Axis lengths that the benchmark uses."""
        return {name: axis.official for name, axis in self.axes.items()}
