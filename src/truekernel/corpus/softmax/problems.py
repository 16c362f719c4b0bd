"""Softmax problems: plain, logarithmic and causal."""

from __future__ import annotations

import torch

from truekernel.model import Axes, AxisSpec, Domain, OutputSpec, Problem, Tensors, TensorSpec

SCALE = 0.125

ANY = Domain(-1e30, 1e30, nonfinite=True)
"""Differences of legal values stay finite in float32. A row that holds NaN or +Inf gives NaN, -Inf weighs nothing, a row of -Inf gives NaN."""


def softmax(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """Softmax of each row of `x` [rows, features]."""
    return (torch.softmax(inputs["x"], dim=1),)


def log_softmax(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """Logarithm of the softmax of each row of `x` [rows, features]."""
    return (torch.log_softmax(inputs["x"], dim=1),)


def causal_softmax(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """Softmax of scaled `scores` [heads, length, length] over the keys up to and including the query; later keys get 0."""
    scores = inputs["scores"] * SCALE
    length = axes["length"]
    hidden = torch.ones(length, length, dtype=torch.bool, device=scores.device).triu(1)
    return (torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1),)


PROBLEMS = (
    Problem(
        name="softmax",
        family="softmax",
        summary="Softmax over long rows.",
        axes={
            "rows": AxisSpec(4096, 2, "batch", (1, 3)),
            "features": AxisSpec(393216, 8192, "reduction", (1, 257, 4099)),
        },
        inputs=(TensorSpec("x", ("rows", "features"), domain=ANY),),
        outputs=(OutputSpec("y", ("rows", "features")),),
        reference=softmax,
        flops=lambda a: 5.0 * a["rows"] * a["features"],
        bytes=lambda a: 8.0 * a["rows"] * a["features"],
        source="KernelBench level 1 problem 23 (Softmax)",
        kernelbench="level1/23",
    ),
    Problem(
        name="log_softmax",
        family="softmax",
        summary="Log-softmax over long rows.",
        axes={
            "rows": AxisSpec(4096, 2, "batch", (1, 3)),
            "features": AxisSpec(393216, 8192, "reduction", (1, 255, 4098)),
        },
        inputs=(TensorSpec("x", ("rows", "features"), domain=ANY),),
        outputs=(OutputSpec("y", ("rows", "features")),),
        reference=log_softmax,
        flops=lambda a: 5.0 * a["rows"] * a["features"],
        bytes=lambda a: 8.0 * a["rows"] * a["features"],
        source="KernelBench level 1 problem 24 (LogSoftmax)",
        kernelbench="level1/24",
    ),
    Problem(
        name="causal_softmax",
        family="softmax",
        summary="Scaled softmax of attention scores under a causal mask.",
        axes={
            "heads": AxisSpec(1024, 2, "batch", (1, 3)),
            "length": AxisSpec(512, 40, "reduction", (1, 31, 33)),
        },
        inputs=(TensorSpec("scores", ("heads", "length", "length"), domain=Domain(-1e30, 1e30)),),
        outputs=(OutputSpec("weights", ("heads", "length", "length")),),
        reference=causal_softmax,
        flops=lambda a: 3.0 * a["heads"] * a["length"] * (a["length"] + 1),
        bytes=lambda a: 6.0 * a["heads"] * a["length"] * a["length"],
        source="attention weights of minGPT, KernelBench level 3 problem 43 (128 x 8 heads, length 512)",
        constants={"scale": SCALE},
    ),
)
