"""What an output is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from truekernel.model.problem import DType, OutputKind


@dataclass(frozen=True, slots=True)
class Expected:
    """One output of one case; all tensors are contiguous, and on one device.

    `published` [shape of the output, its dtype]: the reference in the problem's own precision, what published checkers compare with.
    `truth` [same shape, float64]: the reference in float64 on the quantised inputs; values that the output's dtype can only hold as an
    infinity are infinities here. Index outputs: the index, as a float.
    `scale` [same shape, float64, >= 0, finite]: absolute error that honest arithmetic may show (one standard deviation). Index outputs: of the
    values in `ties`. `spread` [same shape, float64] or None: largest error of the honest panel.
    `ties` [shape of the output, L] or None: for index outputs, float64 values that the index chooses from.
    """

    name: str
    dtype: DType
    kind: OutputKind
    published: torch.Tensor
    truth: torch.Tensor
    scale: torch.Tensor
    spread: torch.Tensor | None = None
    ties: torch.Tensor | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the output."""
        return tuple(self.published.shape)

    @property
    def elements(self) -> int:
        """Number of elements."""
        return self.published.numel()
