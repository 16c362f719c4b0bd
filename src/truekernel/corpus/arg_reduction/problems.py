"""Reductions that return where the extreme value is."""

from __future__ import annotations

import torch

from truekernel.model import Axes, AxisSpec, OutputSpec, Problem, Tensors, TensorSpec


def _argmax_vocab(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (inputs["logits"].argmax(dim=-1),)


def _argmax_vocab_ties(inputs: Tensors, axes: Axes) -> torch.Tensor:
    return inputs["logits"].double()


def _argmin_dim(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    return (inputs["x"].argmin(dim=1),)


def _argmin_dim_ties(inputs: Tensors, axes: Axes) -> torch.Tensor:
    return inputs["x"].double().transpose(1, 2)


def _top1_gate(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    gate, _ = torch.softmax(inputs["logits"], dim=-1).max(dim=-1)
    return gate, inputs["logits"].argmax(dim=-1)


PROBLEMS = (
    Problem(
        name="argmax_vocab",
        family="arg_reduction",
        summary="index of the greatest logit of each row: greedy decoding over a vocabulary",
        axes={
            "B": AxisSpec(official=256, audit=2, kind="batch", odd=(1, 3)),
            "V": AxisSpec(official=32000, audit=32000, kind="reduction", odd=(1, 31, 257, 1030)),
        },
        inputs=(TensorSpec("logits", ("B", "V"), official="normal"),),
        outputs=(OutputSpec("token", ("B",), "int64", kind="index"),),
        reference=_argmax_vocab,
        ties=_argmax_vocab_ties,
        flops=lambda a: 1.0 * a["B"] * a["V"],
        bytes=lambda a: 4.0 * a["B"] * a["V"] + 8.0 * a["B"],
        linear=True,
        source="Llama 2: vocabulary of 32000, arXiv 2307.09288",
    ),
    Problem(
        name="argmin_dim",
        family="arg_reduction",
        summary="index of the least value along the middle axis",
        axes={
            "B": AxisSpec(official=128, audit=2, kind="batch", odd=(1, 3)),
            "R": AxisSpec(official=4096, audit=4096, kind="reduction", odd=(1, 9, 257)),
            "S": AxisSpec(official=4095, audit=9, kind="spatial", odd=(1, 33)),
        },
        inputs=(TensorSpec("x", ("B", "R", "S")),),
        outputs=(OutputSpec("index", ("B", "S"), "int64", kind="index"),),
        reference=_argmin_dim,
        ties=_argmin_dim_ties,
        flops=lambda a: 1.0 * a["B"] * a["R"] * a["S"],
        bytes=lambda a: 4.0 * a["B"] * a["R"] * a["S"] + 8.0 * a["B"] * a["S"],
        linear=True,
        source="KernelBench level 1, 52_Argmin_over_a_dimension",
        kernelbench="level1/52",
    ),
    Problem(
        name="top1_gate",
        family="arg_reduction",
        summary="greatest softmax probability of each row and its index: the router of a mixture of experts",
        axes={
            "T": AxisSpec(official=16384, audit=40, kind="batch", odd=(1, 5)),
            "E": AxisSpec(official=64, audit=64, kind="reduction", odd=(1, 8, 33, 100)),
        },
        inputs=(TensorSpec("logits", ("T", "E"), official="normal"),),
        outputs=(OutputSpec("gate", ("T",)), OutputSpec("expert", ("T",), "int64", kind="index")),
        reference=_top1_gate,
        ties=_argmax_vocab_ties,
        flops=lambda a: 4.0 * a["T"] * a["E"],
        bytes=lambda a: 4.0 * a["T"] * a["E"] + 12.0 * a["T"],
        source="DeepSeekMoE 16B: 64 routed experts, arXiv 2401.06066; Switch Transformer's top-1 gate, arXiv 2101.03961",
    ),
)
