"""What a backend offers to the rooms above; `simt` is the one for CPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from truekernel.model import Configuration, Edit, Execution, LaunchPlan
from truekernel.numerics.expected import Expected

if TYPE_CHECKING:
    import torch


class Run(Protocol):
    """What one variant did: executions in the order asked for, and outputs where they were kept."""

    executions: list[Execution]
    outputs: list[list[torch.Tensor] | None]


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

    def run(self, library: Any, variant: int, executions: Sequence[tuple[str, Configuration]], **options: Any) -> Run:
        """Run one variant of a compiled library on (case key, configuration) pairs."""


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
