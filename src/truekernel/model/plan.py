"""A launch plan: what the host does with a program's kernels, as data. The same plan drives every backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from truekernel.model.problem import DType

Dim3 = tuple[int, int, int]
ITEM_BYTES: dict[str, int] = {
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float64": 8,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
}


@dataclass(frozen=True, slots=True)
class BufferSpec:
    """A device buffer. `init`: input = holds the case's tensor of that name; empty = whatever the allocator left; zeros."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    init: Literal["input", "empty", "zeros"]

    @property
    def elements(self) -> int:
        """Number of elements."""
        n = 1
        for length in self.shape:
            n *= length
        return n

    @property
    def nbytes(self) -> int:
        """Size in bytes, without padding."""
        return self.elements * ITEM_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class BufferArg:
    """A pointer argument: buffer number in the plan, and an offset in bytes from its start."""

    buffer: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class ScalarArg:
    """A scalar argument with the C type of the kernel's parameter, spelled in canonical form ("int", "unsigned int", "long long",
    "unsigned long long", "float", "double", "bool", "short", "unsigned char", "__half", "__nv_bfloat16")."""

    ctype: str
    value: float


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch. `kernel` is a name expression: `softmax_rows` or `reduce<256, float>`. `shared`: dynamic shared memory in bytes."""

    kernel: str
    grid: Dim3
    block: Dim3
    args: tuple[BufferArg | ScalarArg, ...]
    shared: int = 0
    cooperative: bool = False
    stream: int = 0


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """All buffers and launches of one call, in order; `outputs` are buffer numbers."""

    buffers: tuple[BufferSpec, ...]
    launches: tuple[Launch, ...]
    outputs: tuple[int, ...]

    @property
    def kernels(self) -> tuple[str, ...]:
        """Distinct name expressions, in order of first use."""
        return tuple(dict.fromkeys(launch.kernel for launch in self.launches))
