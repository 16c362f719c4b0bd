"""Prefix sums and products along rows."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from truekernel.model import Axes, AxisSpec, Domain, OutputSpec, Problem, Tensors, TensorSpec

_ROWS: Mapping[str, AxisSpec] = {
    "B": AxisSpec(official=32768, audit=2, kind="batch", odd=(1, 3)),
    "N": AxisSpec(official=32768, audit=2500, kind="reduction", odd=(1, 31, 255, 1025, 1537)),
}
_ROW = ("B", "N")
_Y = (OutputSpec("y", _ROW),)


def _cumsum(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (inputs["x"].cumsum(dim=1),)


def _reverse_cumsum(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (inputs["x"].flip(1).cumsum(dim=1).flip(1),)


def _masked_cumsum(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return ((inputs["x"] * inputs["mask"].to(inputs["x"].dtype)).cumsum(dim=1),)


def _cumprod(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (inputs["x"].cumprod(dim=1),)


def _elements(a: Axes) -> float:
    return float(a["B"] * a["N"])


PROBLEMS = (
    Problem(
        name="cumsum",
        family="scan",
        summary="inclusive prefix sum of each row",
        axes=_ROWS,
        inputs=(TensorSpec("x", _ROW),),
        outputs=_Y,
        reference=_cumsum,
        flops=_elements,
        bytes=lambda a: 8.0 * _elements(a),
        linear=True,
        source="KernelBench level 1, 89_cumsum",
        kernelbench="level1/89",
    ),
    Problem(
        name="reverse_cumsum",
        family="scan",
        summary="inclusive suffix sum of each row",
        axes=_ROWS,
        inputs=(TensorSpec("x", _ROW),),
        outputs=_Y,
        reference=_reverse_cumsum,
        flops=_elements,
        bytes=lambda a: 8.0 * _elements(a),
        linear=True,
        source="KernelBench level 1, 91_cumsum_reverse",
        kernelbench="level1/91",
    ),
    Problem(
        name="masked_cumsum",
        family="scan",
        summary="inclusive prefix sum of each row over the elements that a mask selects",
        axes=_ROWS,
        inputs=(TensorSpec("x", _ROW), TensorSpec("mask", _ROW, "uint8", domain=Domain(kind="boolean"))),
        outputs=_Y,
        reference=_masked_cumsum,
        flops=_elements,
        bytes=lambda a: 9.0 * _elements(a),
        linear=True,
        source="KernelBench level 1, 93_masked_cumsum",
        kernelbench="level1/93",
    ),
    Problem(
        name="cumprod",
        family="scan",
        summary="inclusive prefix product of each row: of uniform numbers it is zero after about a hundred",
        axes=_ROWS,
        inputs=(TensorSpec("x", _ROW, domain=Domain(low=-1.0, high=1.0)),),
        outputs=_Y,
        reference=_cumprod,
        flops=_elements,
        bytes=lambda a: 8.0 * _elements(a),
        source="KernelBench level 1, 90_cumprod",
        kernelbench="level1/90",
    ),
)
