"""Spread of honest variants: what the tolerance of our own checker may lean on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import torch

from truekernel.numerics.expected import Expected
from truekernel.numerics.statistics import error_tensors


def with_spread(expected: Sequence[Expected], panel: Iterable[Sequence[torch.Tensor]]) -> list[Expected]:
    """`expected` with `spread` = largest |error| of any panel member, per element (index outputs: of the value that the index points at).

    `panel`: the outputs of each honest variant on the same case. An empty panel gives a spread of 0.
    """
    spreads = [torch.zeros(want.elements, dtype=torch.float64, device=want.truth.device) for want in expected]
    for outputs in panel:
        for spread, output, want in zip(spreads, outputs, expected, strict=True):
            torch.maximum(spread, error_tensors(output, want)[0].abs(), out=spread)
    return [
        dataclasses.replace(want, spread=spread.reshape(want.shape))
        for want, spread in zip(expected, spreads, strict=True)
    ]
