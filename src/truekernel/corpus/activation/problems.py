"""Activation functions."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch.nn import functional

from truekernel.model import Axes, AxisSpec, Domain, OutputSpec, Problem, Tensors, TensorSpec

_ROWS: Mapping[str, AxisSpec] = {
    "B": AxisSpec(official=4096, audit=4, kind="batch", odd=(1, 3)),
    "D": AxisSpec(official=393216, audit=6144, kind="spatial", odd=(1, 5, 1023)),
}


def _gelu(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (functional.gelu(inputs["x"]),)


def _softplus(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (functional.softplus(inputs["x"]),)


def _elu(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (functional.elu(inputs["x"], alpha=1.0),)


def _swiglu(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    gate, value = inputs["x"].split(axes["D"], dim=1)
    return (functional.silu(gate) * value,)


def _swiglu_scale(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """One rounding to bfloat16 on the way, and what a sigmoid in float32 loses where it would be less than the least normal number."""
    gate, value = inputs["x"].split(axes["D"], dim=1)
    stored = 2.0**-9 * functional.silu(gate) * value
    lost = 2.0**-126 * gate * value
    return (torch.hypot(stored, lost),)


PROBLEMS = (
    Problem(
        name="gelu",
        family="activation",
        summary="x * Phi(x), with the error function",
        axes=_ROWS,
        inputs=(TensorSpec("x", ("B", "D")),),
        outputs=(OutputSpec("y", ("B", "D")),),
        reference=_gelu,
        flops=lambda a: 8.0 * a["B"] * a["D"],
        bytes=lambda a: 8.0 * a["B"] * a["D"],
        source="KernelBench level 1, 26_GELU_",
        kernelbench="level1/26",
    ),
    Problem(
        name="softplus",
        family="activation",
        summary="log(1 + exp(x))",
        axes=_ROWS,
        inputs=(TensorSpec("x", ("B", "D"), domain=Domain(nonfinite=True)),),
        outputs=(OutputSpec("y", ("B", "D")),),
        reference=_softplus,
        flops=lambda a: 5.0 * a["B"] * a["D"],
        bytes=lambda a: 8.0 * a["B"] * a["D"],
        source="KernelBench level 1, 29_Softplus",
        kernelbench="level1/29",
    ),
    Problem(
        name="elu",
        family="activation",
        summary="x for x > 0, exp(x) - 1 otherwise: the identity on the inputs that the benchmark draws",
        axes=_ROWS,
        inputs=(TensorSpec("x", ("B", "D"), domain=Domain(nonfinite=True)),),
        outputs=(OutputSpec("y", ("B", "D")),),
        reference=_elu,
        flops=lambda a: 3.0 * a["B"] * a["D"],
        bytes=lambda a: 8.0 * a["B"] * a["D"],
        source="KernelBench level 1, 31_ELU",
        kernelbench="level1/31",
        constants={"alpha": 1.0},
    ),
    Problem(
        name="swiglu_bf16",
        family="activation",
        summary="silu(x[:, :D]) * x[:, D:] in bfloat16: the gate of a transformer's feed-forward block",
        axes={
            "T": AxisSpec(official=4096, audit=3, kind="batch", odd=(1, 5)),
            "D": AxisSpec(official=11008, audit=11008, kind="feature", odd=(1, 7, 66)),
        },
        inputs=(TensorSpec("x", ("T", "2 * D"), "bfloat16", official="normal"),),
        outputs=(OutputSpec("y", ("T", "D"), "bfloat16"),),
        reference=_swiglu,
        error_scale=_swiglu_scale,
        flops=lambda a: 6.0 * a["T"] * a["D"],
        bytes=lambda a: 6.0 * a["T"] * a["D"],
        source="Llama 2 7B: hidden size of the feed-forward block 11008, arXiv 2307.09288",
    ),
)
