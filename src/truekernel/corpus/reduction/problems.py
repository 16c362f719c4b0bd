"""Reductions over one axis or over everything."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from truekernel.model import Axes, AxisSpec, Domain, OutputSpec, Problem, Tensors, TensorSpec

_MIDDLE: Mapping[str, AxisSpec] = {
    "B": AxisSpec(official=128, audit=2, kind="batch", odd=(1, 3)),
    "R": AxisSpec(official=4096, audit=4096, kind="reduction", odd=(1, 2, 257)),
    "S": AxisSpec(official=4095, audit=9, kind="spatial", odd=(1, 33)),
}


def _sum_dim(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (inputs["x"].sum(dim=1, keepdim=True),)


def _min_dim(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (inputs["x"].amin(dim=1),)


def _frobenius_norm(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    x = inputs["x"]
    return (x / torch.linalg.vector_norm(x),)


def _row_variance(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (inputs["x"].var(dim=-1, correction=1),)


def _count_above(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return ((inputs["x"] > 0.5).sum(dim=-1).to(torch.int32),)


def _bincount(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (torch.bincount(inputs["labels"], minlength=axes["K"]).to(torch.int32),)


PROBLEMS = (
    Problem(
        name="sum_dim",
        family="reduction",
        summary="sum over the middle axis, kept with length one",
        axes=_MIDDLE,
        inputs=(TensorSpec("x", ("B", "R", "S"), domain=Domain(nonfinite=True)),),
        outputs=(OutputSpec("y", ("B", 1, "S")),),
        reference=_sum_dim,
        flops=lambda a: 1.0 * a["B"] * a["R"] * a["S"],
        bytes=lambda a: 4.0 * a["B"] * a["S"] * (a["R"] + 1),
        linear=True,
        source="KernelBench level 1, 47_Sum_reduction_over_a_dimension",
        kernelbench="level1/47",
    ),
    Problem(
        name="min_dim",
        family="reduction",
        summary="minimum over the middle axis: of 4096 uniform numbers it is about 2e-4",
        axes=_MIDDLE,
        inputs=(TensorSpec("x", ("B", "R", "S"), domain=Domain(nonfinite=True)),),
        outputs=(OutputSpec("y", ("B", "S")),),
        reference=_min_dim,
        flops=lambda a: 1.0 * a["B"] * a["R"] * a["S"],
        bytes=lambda a: 4.0 * a["B"] * a["S"] * (a["R"] + 1),
        linear=True,
        source="KernelBench level 1, 53_Min_reduction_over_a_dimension",
        kernelbench="level1/53",
    ),
    Problem(
        name="frobenius_norm",
        family="reduction",
        summary="x divided by the root of the sum of all its squares: about 4e-5 at official size",
        axes={
            "B": AxisSpec(official=112, audit=2, kind="batch", odd=(1, 3)),
            "F": AxisSpec(official=64, audit=8, kind="feature", odd=(1,)),
            "H": AxisSpec(official=512, audit=32, kind="spatial", odd=(1, 13)),
            "W": AxisSpec(official=512, audit=48, kind="spatial", odd=(1, 17)),
        },
        inputs=(TensorSpec("x", ("B", "F", "H", "W")),),
        outputs=(OutputSpec("y", ("B", "F", "H", "W")),),
        reference=_frobenius_norm,
        flops=lambda a: 3.0 * a["B"] * a["F"] * a["H"] * a["W"],
        bytes=lambda a: 12.0 * a["B"] * a["F"] * a["H"] * a["W"],
        source="KernelBench level 1, 37_FrobeniusNorm_",
        kernelbench="level1/37",
    ),
    Problem(
        name="row_variance",
        family="reduction",
        summary="unbiased variance of each row",
        axes={
            "B": AxisSpec(official=16384, audit=7, kind="batch", odd=(1, 5)),
            "R": AxisSpec(official=4096, audit=4096, kind="reduction", odd=(2, 3, 31, 33, 1030)),
        },
        inputs=(TensorSpec("x", ("B", "R"), official="normal"),),
        outputs=(OutputSpec("y", ("B",)),),
        reference=_row_variance,
        flops=lambda a: 4.0 * a["B"] * a["R"],
        bytes=lambda a: 4.0 * a["B"] * (a["R"] + 1),
        source="the statistic of a normalisation layer at hidden size 4096",
    ),
    Problem(
        name="count_above",
        family="reduction",
        summary="how many elements of each row exceed one half",
        axes={
            "B": AxisSpec(official=16384, audit=6, kind="batch", odd=(1, 5)),
            "R": AxisSpec(official=4096, audit=4096, kind="reduction", odd=(1, 31, 257)),
        },
        inputs=(TensorSpec("x", ("B", "R")),),
        outputs=(OutputSpec("counts", ("B",), "int32", kind="exact"),),
        reference=_count_above,
        flops=lambda a: 2.0 * a["B"] * a["R"],
        bytes=lambda a: 4.0 * a["B"] * (a["R"] + 1),
        linear=True,
        source="the density of a mask at hidden size 4096",
        constants={"threshold": 0.5},
    ),
    Problem(
        name="bincount",
        family="reduction",
        summary="how often each label occurs",
        axes={
            "N": AxisSpec(official=1 << 24, audit=16384, kind="reduction", odd=(1, 31, 2049)),
            "K": AxisSpec(official=256, audit=256, kind="feature", odd=(1, 10)),
        },
        inputs=(TensorSpec("labels", ("N",), "int64", domain=Domain(kind="index", below="K")),),
        outputs=(OutputSpec("counts", ("K",), "int32", kind="exact"),),
        reference=_bincount,
        flops=lambda a: 1.0 * a["N"],
        bytes=lambda a: 8.0 * a["N"] + 4.0 * a["K"],
        linear=True,
        source="the histogram of an image's grey levels; tokens routed to each of 256 experts",
    ),
)
