"""What a backend offers to the rooms above; `simt` is the one for CPUs, `cuda` the one for NVIDIA GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from truekernel.model import Configuration, Edit, Execution, LaunchPlan
from truekernel.numerics.expected import Expected

if TYPE_CHECKING:
    import torch


Ceiling = tuple[float, bool]
"""What statistics of an execution may show without ending its series: the largest error, in error scales, and whether elements may be of another NaN/Inf class than the truth."""
NO_CEILING: Ceiling = (math.inf, True)


class Run(Protocol):
    """What one variant did: executions in the order asked for, and outputs where they were kept."""

    @property
    def executions(self) -> list[Execution]:
        """Those that were not left out."""

    @property
    def outputs(self) -> list[list[torch.Tensor] | None]:
        """For each of them."""


class Runner(Protocol):
    """Holds cases and runs compiled variants on them, whatever they do. A context manager."""

    def define(
        self,
        key: str,
        plan: LaunchPlan,
        inputs: Mapping[str, torch.Tensor],
        expected: Sequence[Expected] | None = None,
        stale: Sequence[torch.Tensor] | None = None,
        *,
        mutates: Sequence[str] = (),
    ) -> None:
        """Define (or replace) the case `key`."""

    def forget(self, key: str) -> None:
        """Give a case's memory back."""

    def run(
        self,
        library: Any,
        variant: int,
        executions: Sequence[tuple[str, Configuration]],
        *,
        cpu_seconds: float | Sequence[float] = ...,
        keep_outputs: bool = False,
        series: Sequence[int] | None = None,
        tolerances: Sequence[tuple[float, float]] = (),
        rhos: Sequence[float] = ...,
    ) -> Run:
        """Run one variant of a compiled library on (case key, configuration) pairs. `series`: see `simt.Server.run`."""

    def release(self, library: Any) -> None:
        """Forget a library that was run."""

    def close(self) -> None:
        """End all processes."""


class Compiled(Protocol):
    """Machine code of one source, or of several."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """Name expressions."""

    @property
    def checked(self) -> bool:
        """Whether it is for sanitised executions."""

    def select(self, variant: int) -> tuple[int, int]:
        """Raises BadInputError unless it holds that variant."""

    def code_hash(self, kernels: Iterable[str] | None = None, member: int = 0) -> str:
        """Hash of normalised machine code, 16 hex digits."""

    def close(self) -> None:
        """Give its files back."""


class Backend(Protocol):
    """Compiles device code and runs it."""

    def compile_single(self, source: str, kernels: Sequence[str], options: Any = None) -> Any:
        """A library of one source, or why it does not compile."""

    def compile_batch(self, sources: Mapping[int, str], kernels: Sequence[str], options: Any = None) -> Any:
        """Libraries of several sources."""

    def compile_schema(
        self, source: str, kernels: Sequence[str], variants: Mapping[int, tuple[Edit, ...]], options: Any = None
    ) -> Any:
        """Libraries in which variants of one source are chosen at run time."""
