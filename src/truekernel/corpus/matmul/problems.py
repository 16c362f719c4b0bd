"""Matrix products: plain, batched, long inner axis, half precision, fused with an epilogue, and matrix times vector."""

from __future__ import annotations

import torch

from truekernel.model import Axes, AxisSpec, Domain, OutputSpec, Problem, Tensors, TensorSpec

DIVISOR = 10.0

FACTOR = Domain(-1e15, 1e15)
"""Products and their sums stay finite in float32."""
HALF_FACTOR = Domain(-4.0, 4.0)
"""Sums of up to 4096 products stay below the largest float16."""


def matmul(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """`a` [M, K] times `b` [K, N]; also batched, `a` [batch, M, K] times `b` [batch, K, N]."""
    return (torch.matmul(inputs["a"], inputs["b"]),)


def linear_divide_gelu(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """GELU (exact) of (`x` [M, K] times the transpose of `weight` [N, K], plus `bias` [N]) / 10."""
    product = torch.matmul(inputs["x"], inputs["weight"].t())
    return (torch.nn.functional.gelu((product + inputs["bias"]) / DIVISOR),)


def matvec(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """`a` [M, K] times `x` [K]."""
    return (torch.mv(inputs["a"], inputs["x"]),)


PROBLEMS = (
    Problem(
        name="matmul",
        family="matmul",
        summary="Matrix product in float32.",
        axes={
            "M": AxisSpec(2048, 48, "feature", (1, 17, 31)),
            "K": AxisSpec(8192, 160, "reduction", (1, 7, 33)),
            "N": AxisSpec(4096, 48, "feature", (1, 15, 37)),
        },
        inputs=(TensorSpec("a", ("M", "K"), domain=FACTOR), TensorSpec("b", ("K", "N"), domain=FACTOR)),
        outputs=(OutputSpec("c", ("M", "N")),),
        reference=matmul,
        flops=lambda a: 2.0 * a["M"] * a["N"] * a["K"],
        bytes=lambda a: 4.0 * (a["M"] * a["K"] + a["K"] * a["N"] + a["M"] * a["N"]),
        linear=True,
        source="KernelBench level 1 problem 2 (standard matrix multiplication)",
        kernelbench="level1/2",
    ),
    Problem(
        name="batched_matmul",
        family="matmul",
        summary="Batched matrix product in float32.",
        axes={
            "batch": AxisSpec(128, 3, "batch", (1, 2)),
            "M": AxisSpec(512, 20, "feature", (1, 16, 33)),
            "K": AxisSpec(1024, 80, "reduction", (1, 15, 50)),
            "N": AxisSpec(2048, 72, "feature", (1, 63, 65)),
        },
        inputs=(
            TensorSpec("a", ("batch", "M", "K"), domain=FACTOR),
            TensorSpec("b", ("batch", "K", "N"), domain=FACTOR),
        ),
        outputs=(OutputSpec("c", ("batch", "M", "N")),),
        reference=matmul,
        flops=lambda a: 2.0 * a["batch"] * a["M"] * a["N"] * a["K"],
        bytes=lambda a: 4.0 * a["batch"] * (a["M"] * a["K"] + a["K"] * a["N"] + a["M"] * a["N"]),
        linear=True,
        source="KernelBench level 1 problem 3 (batched matrix multiplication)",
        kernelbench="level1/3",
    ),
    Problem(
        name="matmul_large_k",
        family="matmul",
        summary="Matrix product with a long inner axis.",
        axes={
            "M": AxisSpec(256, 16, "feature", (1, 5, 17)),
            "K": AxisSpec(524288, 1024, "reduction", (1, 127, 1000)),
            "N": AxisSpec(256, 24, "feature", (1, 15, 33)),
        },
        inputs=(TensorSpec("a", ("M", "K"), domain=FACTOR), TensorSpec("b", ("K", "N"), domain=FACTOR)),
        outputs=(OutputSpec("c", ("M", "N")),),
        reference=matmul,
        flops=lambda a: 2.0 * a["M"] * a["N"] * a["K"],
        bytes=lambda a: 4.0 * (a["M"] * a["K"] + a["K"] * a["N"] + a["M"] * a["N"]),
        linear=True,
        source="KernelBench level 1 problem 6 (matrix multiplication with large K)",
        kernelbench="level1/6",
    ),
    Problem(
        name="matmul_half",
        family="matmul",
        summary="Matrix product of float16 matrices, rounded to float16 once.",
        axes={
            "M": AxisSpec(4096, 48, "feature", (1, 15, 33)),
            "K": AxisSpec(4096, 112, "reduction", (1, 16, 37)),
            "N": AxisSpec(4096, 48, "feature", (1, 17, 34)),
        },
        inputs=(
            TensorSpec("a", ("M", "K"), "float16", HALF_FACTOR),
            TensorSpec("b", ("K", "N"), "float16", HALF_FACTOR),
        ),
        outputs=(OutputSpec("c", ("M", "N"), "float16"),),
        reference=matmul,
        flops=lambda a: 2.0 * a["M"] * a["N"] * a["K"],
        bytes=lambda a: 2.0 * (a["M"] * a["K"] + a["K"] * a["N"] + a["M"] * a["N"]),
        linear=True,
        source="KernelBench level 1 problem 1 (square matrix multiplication) in float16",
        kernelbench="level1/1",
    ),
    Problem(
        name="linear_divide_gelu",
        family="matmul",
        summary="Linear layer, division by a constant and GELU in one pass.",
        axes={
            "M": AxisSpec(1024, 20, "batch", (1, 16, 17)),
            "K": AxisSpec(8192, 256, "reduction", (1, 15, 100)),
            "N": AxisSpec(8192, 36, "feature", (1, 31)),
        },
        inputs=(TensorSpec("x", ("M", "K"), domain=FACTOR),),
        parameters=(
            TensorSpec("weight", ("N", "K"), domain=FACTOR, official="signed", scale="1/sqrt(K)"),
            TensorSpec("bias", ("N",), domain=FACTOR, official="signed", scale="1/sqrt(K)"),
        ),
        outputs=(OutputSpec("y", ("M", "N")),),
        reference=linear_divide_gelu,
        flops=lambda a: 2.0 * a["M"] * a["N"] * a["K"] + 12.0 * a["M"] * a["N"],
        bytes=lambda a: 4.0 * (a["M"] * a["K"] + a["K"] * a["N"] + a["M"] * a["N"] + a["N"]),
        source="KernelBench level 2 problem 86 (Matmul_Divide_GELU)",
        kernelbench="level2/86",
        constants={"divisor": DIVISOR},
    ),
    Problem(
        name="matvec",
        family="matmul",
        summary="Matrix times vector with very long rows.",
        axes={
            "M": AxisSpec(2048, 4, "batch", (1, 3)),
            "K": AxisSpec(1048576, 8192, "reduction", (1, 255, 2050)),
        },
        inputs=(TensorSpec("a", ("M", "K"), domain=FACTOR), TensorSpec("x", ("K",), domain=FACTOR)),
        outputs=(OutputSpec("y", ("M",)),),
        reference=matvec,
        flops=lambda a: 2.0 * a["M"] * a["K"],
        bytes=lambda a: 4.0 * (a["M"] * a["K"] + a["K"] + a["M"]),
        linear=True,
        source="KernelBench level 1 problem 4 (matrix-vector multiplication)",
        kernelbench="level1/4",
    ),
)
