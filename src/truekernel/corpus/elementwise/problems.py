"""Element-wise problems."""

from __future__ import annotations

import torch

from truekernel.model import REAL, Axes, AxisSpec, Domain, OutputSpec, Problem, Tensors, TensorSpec


def _scale_bias_clamp(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    scale, bias = inputs["scale"][None, :, None], inputs["bias"][None, :, None]
    return (torch.clamp(inputs["x"] * scale + bias, 0.0, 6.0),)


def _add_transposed(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (inputs["a"] + inputs["b"].T,)


def _axpby(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (1.5 * inputs["x"] - 0.5 * inputs["y"],)


PROBLEMS = (
    Problem(
        name="scale_bias_clamp",
        family="elementwise",
        summary="clamp(x * scale[c] + bias[c], 0, 6): batch norm folded for inference, then ReLU6",
        axes={
            "B": AxisSpec(official=32, audit=2, kind="batch", odd=(1, 3)),
            "C": AxisSpec(official=96, audit=96, kind="feature", odd=(1, 5)),
            "S": AxisSpec(official=12544, audit=300, kind="spatial", odd=(1, 37)),
        },
        inputs=(TensorSpec("x", ("B", "C", "S"), domain=Domain(nonfinite=True)),),
        parameters=(TensorSpec("scale", ("C",)), TensorSpec("bias", ("C",))),
        outputs=(OutputSpec("y", ("B", "C", "S")),),
        reference=_scale_bias_clamp,
        flops=lambda a: 4.0 * a["B"] * a["C"] * a["S"],
        bytes=lambda a: 8.0 * a["B"] * a["C"] * a["S"] + 8.0 * a["C"],
        linear=True,
        source="MobileNetV2, arXiv 1801.04381, first bottleneck: 96 channels at 112 x 112",
        constants={"low": 0.0, "high": 6.0},
    ),
    Problem(
        name="add_transposed",
        family="elementwise",
        summary="a[m, n] + b[n, m]",
        axes={
            "M": AxisSpec(official=8192, audit=160, kind="spatial", odd=(1, 33)),
            "N": AxisSpec(official=4096, audit=224, kind="spatial", odd=(1, 31, 0)),
        },
        inputs=(TensorSpec("a", ("M", "N"), domain=REAL), TensorSpec("b", ("N", "M"))),
        outputs=(OutputSpec("c", ("M", "N")),),
        reference=_add_transposed,
        flops=lambda a: 1.0 * a["M"] * a["N"],
        bytes=lambda a: 12.0 * a["M"] * a["N"],
        linear=True,
        source="gradient of a symmetric product, G + G^T",
    ),
    Problem(
        name="axpby_half",
        family="elementwise",
        summary="1.5 x - 0.5 y in float16",
        axes={"N": AxisSpec(official=1 << 26, audit=32768, kind="batch", odd=(1, 7, 8, 1021, 0))},
        inputs=(TensorSpec("x", ("N",), "float16"), TensorSpec("y", ("N",), "float16")),
        outputs=(OutputSpec("z", ("N",), "float16"),),
        reference=_axpby,
        flops=lambda a: 3.0 * a["N"],
        bytes=lambda a: 6.0 * a["N"],
        linear=True,
        source="BLAS level 1, axpby; the step of an extrapolating update",
        constants={"alpha": 1.5, "beta": -0.5},
    ),
)
