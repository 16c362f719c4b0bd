"""Pooling: maximum and average over windows, and the average of a whole plane."""

from __future__ import annotations

import torch

from truekernel.model import Axes, AxisSpec, Domain, OutputSpec, Problem, Tensors, TensorSpec

SUMMABLE = Domain(-1e30, 1e30)
"""Sums over a window stay finite in float32."""


def max_pool2d(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """Maximum over windows of 4 x 4, stride 1, padding 1, of `x` [batch, C, H, W]; NaN wins."""
    return (torch.nn.functional.max_pool2d(inputs["x"], 4, stride=1, padding=1),)


def avg_pool2d(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """Mean over windows of 3 x 3, stride 2, padding 1, of `x` [batch, C, H, W]; padding does not count."""
    return (torch.nn.functional.avg_pool2d(inputs["x"], 3, stride=2, padding=1, count_include_pad=False),)


def global_avg_pool(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """Mean of each plane of `x` [batch, C, positions], summed in float32 or wider."""
    x = inputs["x"]
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (wide.mean(dim=2).to(x.dtype),)


PROBLEMS = (
    Problem(
        name="max_pool2d",
        family="pooling",
        summary="2-D max pooling, kernel 4, stride 1, padding 1.",
        axes={
            "batch": AxisSpec(32, 2, "batch", (1, 3)),
            "C": AxisSpec(64, 3, "feature", (1, 5)),
            "H": AxisSpec(512, 34, "spatial", (2, 3, 17)),
            "W": AxisSpec(512, 39, "spatial", (2, 3, 35)),
        },
        inputs=(TensorSpec("x", ("batch", "C", "H", "W"), domain=Domain(nonfinite=True)),),
        outputs=(OutputSpec("y", ("batch", "C", "H - 1", "W - 1")),),
        reference=max_pool2d,
        flops=lambda a: 15.0 * a["batch"] * a["C"] * (a["H"] - 1) * (a["W"] - 1),
        bytes=lambda a: 4.0 * a["batch"] * a["C"] * (a["H"] * a["W"] + (a["H"] - 1) * (a["W"] - 1)),
        source="KernelBench level 1 problem 42 (Max Pooling 2D)",
        kernelbench="level1/42",
        constants={"kernel": 4, "stride": 1, "padding": 1},
    ),
    Problem(
        name="avg_pool2d",
        family="pooling",
        summary="2-D average pooling, kernel 3, stride 2, padding 1 that does not count.",
        axes={
            "batch": AxisSpec(16, 2, "batch", (1, 3)),
            "C": AxisSpec(64, 4, "feature", (1, 5)),
            "H": AxisSpec(1024, 50, "spatial", (1, 2, 31)),
            "W": AxisSpec(1024, 57, "spatial", (1, 2, 33)),
        },
        inputs=(TensorSpec("x", ("batch", "C", "H", "W"), domain=SUMMABLE),),
        outputs=(OutputSpec("y", ("batch", "C", "(H - 1) // 2 + 1", "(W - 1) // 2 + 1")),),
        reference=avg_pool2d,
        flops=lambda a: 10.0 * a["batch"] * a["C"] * ((a["H"] - 1) // 2 + 1) * ((a["W"] - 1) // 2 + 1),
        bytes=lambda a: 5.0 * a["batch"] * a["C"] * a["H"] * a["W"],
        source="KernelBench level 1 problem 45 (Average Pooling 2D) at half the side, with padded windows as in Inception networks",
        constants={"kernel": 3, "stride": 2, "padding": 1},
    ),
    Problem(
        name="global_avg_pool_half",
        family="pooling",
        summary="Mean of each float16 plane.",
        axes={
            "batch": AxisSpec(256, 2, "batch", (1, 3)),
            "C": AxisSpec(512, 6, "feature", (1, 5)),
            "positions": AxisSpec(3136, 3136, "reduction", (1, 49, 66)),
        },
        inputs=(TensorSpec("x", ("batch", "C", "positions"), "float16", Domain(-60000.0, 60000.0)),),
        outputs=(OutputSpec("y", ("batch", "C"), "float16"),),
        reference=global_avg_pool,
        flops=lambda a: 1.0 * a["batch"] * a["C"] * a["positions"],
        bytes=lambda a: 2.0 * a["batch"] * a["C"] * (a["positions"] + 1),
        source="squeeze step of squeeze-and-excitation blocks (planes of 56 x 56)",
    ),
)
