"""Attention and what surrounds it: scaled dot products, a causal half-precision version, and rotary embedding."""

from __future__ import annotations

import math

import torch

from truekernel.model import Axes, AxisSpec, Domain, OutputSpec, Problem, Tensors, TensorSpec

FACTOR = Domain(-1e12, 1e12)
"""Scores stay finite in float32."""
HALF_FACTOR = Domain(-60.0, 60.0)
"""Beyond that, scores differ by so much that rounding one decides the whole softmax."""


def _wide(x: torch.Tensor) -> torch.Tensor:
    """Half-precision inputs are computed with in float32, as fused kernels do; float32 and float64 stay as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _attend(inputs: Tensors, hidden: torch.Tensor | None) -> torch.Tensor:
    q, k, v = (_wide(inputs[name]) for name in ("q", "k", "v"))
    scores = torch.matmul(q, k.transpose(-2, -1)) * (1.0 / math.sqrt(q.shape[-1]))
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf"))
    return torch.matmul(torch.softmax(scores, dim=-1), v).to(inputs["q"].dtype)


def attention(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """Attention of `q` [heads, queries, D] to `k`, `v` [heads, keys, D], scores scaled by 1/sqrt(D)."""
    return (_attend(inputs, None),)


def causal_attention(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """Attention of `q`, `k`, `v` [heads, length, D] in which a position sees itself and what came before."""
    length = axes["length"]
    hidden = torch.ones(length, length, dtype=torch.bool, device=inputs["q"].device).triu(1)
    return (_attend(inputs, hidden),)


def rotary_embedding(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """Rotate each pair (i, i + pairs) of `x` [tokens, heads, 2 * pairs] by the angle whose `cosine` and `sine` [tokens, pairs] are given."""
    x = inputs["x"]
    wide = _wide(x)
    cosine = inputs["cosine"].to(wide.dtype)[:, None, :]
    sine = inputs["sine"].to(wide.dtype)[:, None, :]
    first, second = wide.chunk(2, dim=-1)
    rotated = torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)
    return (rotated.to(x.dtype),)


PROBLEMS = (
    Problem(
        name="attention",
        family="attention",
        summary="Scaled dot-product attention.",
        axes={
            "heads": AxisSpec(1024, 2, "batch", (1, 3)),
            "queries": AxisSpec(512, 13, "spatial", (1, 4, 9)),
            "keys": AxisSpec(512, 48, "reduction", (1, 31, 65)),
            "D": AxisSpec(96, 96, "reduction", (1, 33, 128)),
        },
        inputs=(
            TensorSpec("q", ("heads", "queries", "D"), domain=FACTOR),
            TensorSpec("k", ("heads", "keys", "D"), domain=FACTOR),
            TensorSpec("v", ("heads", "keys", "D"), domain=FACTOR),
        ),
        outputs=(OutputSpec("y", ("heads", "queries", "D")),),
        reference=attention,
        flops=lambda a: 4.0 * a["heads"] * a["queries"] * a["keys"] * a["D"],
        bytes=lambda a: 8.0 * a["heads"] * a["D"] * (a["queries"] + a["keys"]),
        source="KernelBench level 1 problem 97 (scaled dot-product attention) at the head width of level 3 problem 43",
    ),
    Problem(
        name="causal_attention_half",
        family="attention",
        summary="Causal attention in float16.",
        axes={
            "heads": AxisSpec(512, 2, "batch", (1, 3)),
            "length": AxisSpec(1024, 36, "reduction", (1, 15, 33)),
            "D": AxisSpec(64, 64, "feature"),
        },
        inputs=(
            TensorSpec("q", ("heads", "length", "D"), "float16", HALF_FACTOR),
            TensorSpec("k", ("heads", "length", "D"), "float16", HALF_FACTOR),
            TensorSpec("v", ("heads", "length", "D"), "float16", HALF_FACTOR),
        ),
        outputs=(OutputSpec("y", ("heads", "length", "D"), "float16"),),
        reference=causal_attention,
        flops=lambda a: 2.0 * a["heads"] * a["length"] * (a["length"] + 1) * a["D"],
        bytes=lambda a: 8.0 * a["heads"] * a["length"] * a["D"],
        source="self-attention of GPT-2 medium (head width 64, length 1024) in float16",
    ),
    Problem(
        name="rotary_embedding_bf16",
        family="attention",
        summary="Rotary position embedding of bfloat16 heads.",
        axes={
            "tokens": AxisSpec(4096, 20, "batch", (1, 3)),
            "heads": AxisSpec(32, 6, "feature", (1, 5)),
            "pairs": AxisSpec(64, 64, "feature", (1, 7, 34)),
        },
        inputs=(
            TensorSpec("x", ("tokens", "heads", "2 * pairs"), "bfloat16", Domain(-1e30, 1e30)),
            TensorSpec("cosine", ("tokens", "pairs"), domain=Domain(-1.0, 1.0), official="signed"),
            TensorSpec("sine", ("tokens", "pairs"), domain=Domain(-1.0, 1.0), official="signed"),
        ),
        outputs=(OutputSpec("y", ("tokens", "heads", "2 * pairs"), "bfloat16"),),
        reference=rotary_embedding,
        flops=lambda a: 6.0 * a["tokens"] * a["heads"] * a["pairs"],
        bytes=lambda a: 8.0 * a["tokens"] * (a["heads"] + 1) * a["pairs"],
        source="rotary embedding of Llama-style decoders (head width 128)",
    ),
)
