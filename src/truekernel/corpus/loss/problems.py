"""Losses: everything becomes one number."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch.nn import functional

from truekernel.model import Axes, AxisSpec, Domain, OutputSpec, Problem, Tensors, TensorSpec

_ROWS: Mapping[str, AxisSpec] = {
    "B": AxisSpec(official=32768, audit=8, kind="batch", odd=(1, 3)),
    "N": AxisSpec(official=32768, audit=4096, kind="reduction", odd=(1, 5, 127, 1025)),
}
_ROW = ("B", "N")
_LOSS = (OutputSpec("loss", ()),)


def _mse(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (torch.mean((inputs["predictions"] - inputs["targets"]) ** 2),)


def _smooth_l1(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (functional.smooth_l1_loss(inputs["predictions"], inputs["targets"], beta=1.0),)


def _hinge(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    sign = 2 * inputs["labels"].to(inputs["predictions"].dtype) - 1
    return (torch.mean(torch.clamp(1 - inputs["predictions"] * sign[:, None], min=0)),)


def _cross_entropy(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (functional.cross_entropy(inputs["logits"], inputs["targets"]),)


def _kl_div(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (functional.kl_div(torch.log(inputs["predictions"]), inputs["targets"], reduction="batchmean"),)


def _triplet_margin(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (
        functional.triplet_margin_loss(inputs["anchor"], inputs["positive"], inputs["negative"], margin=1.0, eps=1e-6),
    )


def _elements(a: Axes) -> float:
    return float(a["B"] * a["N"])


PROBLEMS = (
    Problem(
        name="mse_loss",
        family="loss",
        summary="mean of squared differences",
        axes=_ROWS,
        inputs=(TensorSpec("predictions", _ROW), TensorSpec("targets", _ROW)),
        outputs=_LOSS,
        reference=_mse,
        flops=lambda a: 3.0 * _elements(a),
        bytes=lambda a: 8.0 * _elements(a),
        source="KernelBench level 1, 94_MSELoss",
        kernelbench="level1/94",
    ),
    Problem(
        name="smooth_l1_loss",
        family="loss",
        summary="mean of 0.5 d^2 for |d| < 1, |d| - 0.5 otherwise",
        axes=_ROWS,
        inputs=(TensorSpec("predictions", _ROW), TensorSpec("targets", _ROW)),
        outputs=_LOSS,
        reference=_smooth_l1,
        flops=lambda a: 5.0 * _elements(a),
        bytes=lambda a: 8.0 * _elements(a),
        source="KernelBench level 1, 96_HuberLoss",
        kernelbench="level1/96",
        constants={"beta": 1.0},
    ),
    Problem(
        name="hinge_loss",
        family="loss",
        summary="mean of max(0, 1 - p * t), t = 1 or -1 for each row: about one whatever the inputs",
        axes=_ROWS,
        inputs=(TensorSpec("predictions", _ROW), TensorSpec("labels", ("B",), "uint8", domain=Domain(kind="boolean"))),
        outputs=_LOSS,
        reference=_hinge,
        flops=lambda a: 4.0 * _elements(a),
        bytes=lambda a: 4.0 * _elements(a) + a["B"],
        source="KernelBench level 1, 100_HingeLoss, with its targets as boolean labels",
    ),
    Problem(
        name="cross_entropy",
        family="loss",
        summary="mean over rows of log(sum(exp(x))) - x[target]",
        axes={
            "B": AxisSpec(official=32768, audit=7, kind="batch", odd=(1, 3)),
            "C": AxisSpec(official=4096, audit=4096, kind="reduction", odd=(1, 2, 33, 1001)),
        },
        inputs=(
            TensorSpec("logits", ("B", "C")),
            TensorSpec("targets", ("B",), "int64", domain=Domain(kind="index", below="C")),
        ),
        outputs=_LOSS,
        reference=_cross_entropy,
        flops=lambda a: 4.0 * a["B"] * a["C"],
        bytes=lambda a: 4.0 * a["B"] * a["C"] + 8.0 * a["B"],
        source="KernelBench level 1, 95_CrossEntropyLoss",
        kernelbench="level1/95",
    ),
    Problem(
        name="kl_div",
        family="loss",
        summary="sum of t (log t - log p) over everything, divided by the number of rows; t = 0 adds nothing",
        axes={
            "B": AxisSpec(official=16384, audit=4, kind="batch", odd=(1, 3)),
            "N": AxisSpec(official=16384, audit=4096, kind="reduction", odd=(1, 5, 127, 1025)),
        },
        inputs=(
            TensorSpec("predictions", _ROW, domain=Domain(low=1e-6, high=1.0), scale="2/N"),
            TensorSpec("targets", _ROW, domain=Domain(low=0.0, high=1.0), scale="2/N"),
        ),
        outputs=_LOSS,
        reference=_kl_div,
        flops=lambda a: 5.0 * _elements(a),
        bytes=lambda a: 8.0 * _elements(a),
        source="KernelBench level 1, 98_KLDivLoss, with inputs that sum to about one instead of exactly one",
        kernelbench="level1/98",
    ),
    Problem(
        name="triplet_margin_loss",
        family="loss",
        summary="mean over rows of max(0, |a - p| - |a - n| + 1): about one whatever the inputs",
        axes={
            "B": AxisSpec(official=32768, audit=5, kind="batch", odd=(1, 3)),
            "N": AxisSpec(official=8192, audit=8192, kind="reduction", odd=(1, 31, 130)),
        },
        inputs=(TensorSpec("anchor", _ROW), TensorSpec("positive", _ROW), TensorSpec("negative", _ROW)),
        outputs=_LOSS,
        reference=_triplet_margin,
        flops=lambda a: 8.0 * _elements(a),
        bytes=lambda a: 12.0 * _elements(a),
        source="KernelBench level 1, 99_TripletMarginLoss",
        kernelbench="level1/99",
        constants={"margin": 1.0, "eps": 1e-6},
    ),
)
