"""Convolutions: strided 2-D, dilated 1-D, depthwise 2-D and transposed 1-D."""

from __future__ import annotations

import torch

from truekernel.model import Axes, AxisSpec, Domain, OutputSpec, Problem, Tensors, TensorSpec

FACTOR = Domain(-1e15, 1e15)
"""Products and their sums stay finite in float32."""


def conv2d(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """`x` [batch, C, H, W] with `weight` [O, C, 11, 11] and `bias` [O], stride 4, padding 2."""
    return (torch.nn.functional.conv2d(inputs["x"], inputs["weight"], inputs["bias"], stride=4, padding=2),)


def conv1d_dilated(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """`x` [batch, C, L] with `weight` [O, C, 3], stride 3, dilation 4, no padding."""
    return (torch.nn.functional.conv1d(inputs["x"], inputs["weight"], stride=3, dilation=4),)


def depthwise_conv2d(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """Each channel of `x` [batch, C, H, W] with its own filter of `weight` [C, 1, 3, 3], stride 1, no padding."""
    return (torch.nn.functional.conv2d(inputs["x"], inputs["weight"], groups=axes["C"]),)


def conv_transpose1d(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """Transposed convolution of `x` [batch, C, L] with `weight` [C, O, 3], stride 2, padding 1, dilation 2."""
    return (torch.nn.functional.conv_transpose1d(inputs["x"], inputs["weight"], stride=2, padding=1, dilation=2),)


def _conv2d_pixels(a: Axes) -> float:
    return float(((a["H"] - 7) // 4 + 1) * ((a["W"] - 7) // 4 + 1))


PROBLEMS = (
    Problem(
        name="conv2d",
        family="convolution",
        summary="2-D convolution, kernel 11, stride 4, padding 2, with bias.",
        axes={
            "batch": AxisSpec(256, 2, "batch", (1, 3)),
            "C": AxisSpec(3, 3, "reduction", (1, 2)),
            "O": AxisSpec(96, 9, "feature", (1, 17)),
            "H": AxisSpec(224, 27, "spatial", (7, 13)),
            "W": AxisSpec(224, 31, "spatial", (7, 18)),
        },
        inputs=(TensorSpec("x", ("batch", "C", "H", "W"), domain=FACTOR),),
        parameters=(
            TensorSpec("weight", ("O", "C", 11, 11), domain=FACTOR, official="signed", scale="1/sqrt(121 * C)"),
            TensorSpec("bias", ("O",), domain=FACTOR, official="signed", scale="1/sqrt(121 * C)"),
        ),
        outputs=(OutputSpec("y", ("batch", "O", "(H - 7) // 4 + 1", "(W - 7) // 4 + 1")),),
        reference=conv2d,
        flops=lambda a: 242.0 * a["batch"] * a["O"] * a["C"] * _conv2d_pixels(a),
        bytes=lambda a: (
            4.0 * (a["batch"] * (a["C"] * a["H"] * a["W"] + a["O"] * _conv2d_pixels(a)) + 121 * a["O"] * a["C"])
        ),
        linear=True,
        source="KernelBench level 1 problem 50 (first layer of AlexNet)",
        kernelbench="level1/50",
        constants={"kernel": 11, "stride": 4, "padding": 2},
    ),
    Problem(
        name="conv1d_dilated",
        family="convolution",
        summary="1-D convolution, kernel 3, stride 3, dilation 4.",
        axes={
            "batch": AxisSpec(64, 2, "batch", (1, 3)),
            "C": AxisSpec(64, 64, "reduction", (1, 9)),
            "O": AxisSpec(128, 12, "feature", (1, 7)),
            "L": AxisSpec(524280, 130, "spatial", (9, 104, 107)),
        },
        inputs=(TensorSpec("x", ("batch", "C", "L"), domain=FACTOR),),
        parameters=(TensorSpec("weight", ("O", "C", 3), domain=FACTOR, official="signed", scale="1/sqrt(3 * C)"),),
        outputs=(OutputSpec("y", ("batch", "O", "(L - 9) // 3 + 1")),),
        reference=conv1d_dilated,
        flops=lambda a: 6.0 * a["batch"] * a["O"] * a["C"] * ((a["L"] - 9) // 3 + 1),
        bytes=lambda a: 4.0 * (a["batch"] * (a["C"] * a["L"] + a["O"] * ((a["L"] - 9) // 3 + 1)) + 3 * a["O"] * a["C"]),
        linear=True,
        source="KernelBench level 1 problem 76 (conv standard 1D dilated strided)",
        kernelbench="level1/76",
        constants={"kernel": 3, "stride": 3, "dilation": 4},
    ),
    Problem(
        name="depthwise_conv2d",
        family="convolution",
        summary="Depthwise 2-D convolution, kernel 3.",
        axes={
            "batch": AxisSpec(16, 2, "batch", (1, 3)),
            "C": AxisSpec(64, 3, "feature", (1, 5)),
            "H": AxisSpec(512, 36, "spatial", (3, 18, 19)),
            "W": AxisSpec(512, 42, "spatial", (3, 34, 35)),
        },
        inputs=(TensorSpec("x", ("batch", "C", "H", "W"), domain=FACTOR),),
        parameters=(TensorSpec("weight", ("C", 1, 3, 3), domain=FACTOR, official="signed", scale="1/3"),),
        outputs=(OutputSpec("y", ("batch", "C", "H - 2", "W - 2")),),
        reference=depthwise_conv2d,
        flops=lambda a: 18.0 * a["batch"] * a["C"] * (a["H"] - 2) * (a["W"] - 2),
        bytes=lambda a: 4.0 * a["batch"] * a["C"] * (a["H"] * a["W"] + (a["H"] - 2) * (a["W"] - 2)),
        linear=True,
        source="KernelBench level 1 problem 82 (conv depthwise 2D)",
        kernelbench="level1/82",
        constants={"kernel": 3},
    ),
    Problem(
        name="conv_transpose1d",
        family="convolution",
        summary="Transposed 1-D convolution, kernel 3, stride 2, padding 1, dilation 2.",
        axes={
            "batch": AxisSpec(16, 2, "batch", (1, 3)),
            "C": AxisSpec(32, 32, "reduction", (1, 5)),
            "O": AxisSpec(64, 12, "feature", (1, 7)),
            "L": AxisSpec(131072, 60, "spatial", (1, 17, 64)),
        },
        inputs=(TensorSpec("x", ("batch", "C", "L"), domain=FACTOR),),
        parameters=(TensorSpec("weight", ("C", "O", 3), domain=FACTOR, official="signed", scale="1/sqrt(3 * O)"),),
        outputs=(OutputSpec("y", ("batch", "O", "2 * L + 1")),),
        reference=conv_transpose1d,
        flops=lambda a: 6.0 * a["batch"] * a["O"] * a["C"] * a["L"],
        bytes=lambda a: 4.0 * (a["batch"] * (a["C"] * a["L"] + a["O"] * (2 * a["L"] + 1)) + 3 * a["O"] * a["C"]),
        linear=True,
        source="KernelBench level 1 problem 79 (conv transposed 1D, strided, padded, dilated)",
        kernelbench="level1/79",
        constants={"kernel": 3, "stride": 2, "padding": 1, "dilation": 2},
    ),
)
