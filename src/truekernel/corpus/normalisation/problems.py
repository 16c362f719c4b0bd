"""Normalisation problems: layer, RMS, batch, group and L2."""

from __future__ import annotations

import torch

from truekernel.model import Axes, AxisSpec, Domain, OutputSpec, Problem, Tensors, TensorSpec

EPS = 1e-5
RMS_EPS = 1e-6
L2_EPS = 1e-12

SQUARABLE = Domain(-1e15, 1e15)
"""Bounded so that sums of squares stay finite in float32."""


def _wide(x: torch.Tensor) -> torch.Tensor:
    """Half-precision inputs are normalised in float32, as model code does; float32 and float64 stay as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def layer_norm(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """Normalise each row of `x` [rows, features] to mean 0 and variance 1 (biased), then scale and shift per feature."""
    x = inputs["x"]
    return (torch.nn.functional.layer_norm(x, (axes["features"],), inputs["weight"], inputs["bias"], EPS),)


def rms_norm(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """Divide each row of `x` [tokens, hidden] by its root mean square and scale per feature."""
    x, weight = inputs["x"], inputs["weight"]
    wide = _wide(x)
    normal = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + RMS_EPS)
    return ((normal * _wide(weight)).to(x.dtype),)


def channel_rms_norm(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """Divide `x` [batch, channels, positions] by its root mean square over the channels."""
    x = inputs["x"]
    return (x / torch.sqrt(x.square().mean(dim=1, keepdim=True) + EPS),)


def batch_norm(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """Normalise `x` [batch, channels, positions] with the batch's own statistics of each channel (biased variance)."""
    x = inputs["x"]
    mean = x.mean(dim=(0, 2), keepdim=True)
    centred = x - mean
    variance = centred.square().mean(dim=(0, 2), keepdim=True)
    normal = centred * torch.rsqrt(variance + EPS)
    return (normal * inputs["weight"][None, :, None] + inputs["bias"][None, :, None],)


def group_norm(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """Normalise each group of adjacent channels of `x` [batch, groups * width, positions], then scale and shift per channel."""
    return (torch.group_norm(inputs["x"], axes["groups"], inputs["weight"], inputs["bias"], EPS),)


def l2_normalise(inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """Divide each row of `x` [rows, features] by its Euclidean norm, or by 1e-12 where the norm is smaller."""
    x = inputs["x"]
    norm = torch.sqrt(x.square().sum(dim=1, keepdim=True))
    return (x / norm.clamp_min(L2_EPS),)


PROBLEMS = (
    Problem(
        name="layer_norm",
        family="normalisation",
        summary="Layer normalisation of rows with affine weights.",
        axes={
            "rows": AxisSpec(65536, 6, "batch", (1, 5)),
            "features": AxisSpec(768, 768, "reduction", (1, 31, 129, 770)),
        },
        inputs=(TensorSpec("x", ("rows", "features"), domain=SQUARABLE),),
        parameters=(
            TensorSpec("weight", ("features",), domain=SQUARABLE, official="ones"),
            TensorSpec("bias", ("features",), domain=SQUARABLE, official="zeros"),
        ),
        outputs=(OutputSpec("y", ("rows", "features")),),
        reference=layer_norm,
        flops=lambda a: 8.0 * a["rows"] * a["features"],
        bytes=lambda a: 8.0 * a["rows"] * a["features"] + 8.0 * a["features"],
        source="LayerNorm of the minGPT block, KernelBench level 3 problem 44 (embedding 768)",
        constants={"eps": EPS},
    ),
    Problem(
        name="rms_norm_bf16",
        family="normalisation",
        summary="RMS normalisation of bfloat16 token vectors with a weight per feature.",
        axes={
            "tokens": AxisSpec(4096, 2, "batch", (1, 3)),
            "hidden": AxisSpec(4096, 4096, "reduction", (1, 255, 514)),
        },
        inputs=(TensorSpec("x", ("tokens", "hidden"), "bfloat16", SQUARABLE),),
        parameters=(TensorSpec("weight", ("hidden",), "bfloat16", SQUARABLE, official="ones"),),
        outputs=(OutputSpec("y", ("tokens", "hidden"), "bfloat16"),),
        reference=rms_norm,
        flops=lambda a: 4.0 * a["tokens"] * a["hidden"],
        bytes=lambda a: 4.0 * a["tokens"] * a["hidden"] + 2.0 * a["hidden"],
        source="RMSNorm of Llama-style decoders (hidden size 4096)",
        constants={"eps": RMS_EPS},
    ),
    Problem(
        name="channel_rms_norm",
        family="normalisation",
        summary="RMS normalisation over the channel axis of an image batch.",
        axes={
            "batch": AxisSpec(112, 2, "batch", (1, 3)),
            "channels": AxisSpec(64, 64, "reduction", (1, 7, 9)),
            "positions": AxisSpec(512 * 512, 80, "spatial", (1, 31, 33)),
        },
        inputs=(TensorSpec("x", ("batch", "channels", "positions"), domain=SQUARABLE),),
        outputs=(OutputSpec("y", ("batch", "channels", "positions")),),
        reference=channel_rms_norm,
        flops=lambda a: 3.0 * a["batch"] * a["channels"] * a["positions"],
        bytes=lambda a: 8.0 * a["batch"] * a["channels"] * a["positions"],
        source="KernelBench level 1 problem 36 (RMSNorm)",
        kernelbench="level1/36",
        constants={"eps": EPS},
    ),
    Problem(
        name="batch_norm",
        family="normalisation",
        summary="Batch normalisation with the statistics of the batch.",
        axes={
            "batch": AxisSpec(64, 4, "reduction", (1, 3)),
            "channels": AxisSpec(64, 6, "feature", (1, 5)),
            "positions": AxisSpec(512 * 512, 400, "reduction", (1, 63, 130)),
        },
        inputs=(TensorSpec("x", ("batch", "channels", "positions"), domain=SQUARABLE),),
        parameters=(
            TensorSpec("weight", ("channels",), domain=SQUARABLE, official="ones"),
            TensorSpec("bias", ("channels",), domain=SQUARABLE, official="zeros"),
        ),
        outputs=(OutputSpec("y", ("batch", "channels", "positions")),),
        reference=batch_norm,
        flops=lambda a: 8.0 * a["batch"] * a["channels"] * a["positions"],
        bytes=lambda a: 8.0 * a["batch"] * a["channels"] * a["positions"] + 8.0 * a["channels"],
        source="KernelBench level 1 problem 33 (BatchNorm, training mode)",
        kernelbench="level1/33",
        constants={"eps": EPS},
    ),
    Problem(
        name="group_norm",
        family="normalisation",
        summary="Group normalisation with affine weights per channel.",
        axes={
            "batch": AxisSpec(112, 2, "batch", (1, 3)),
            "groups": AxisSpec(8, 8, "group", (1, 3)),
            "width": AxisSpec(8, 8, "group", (1, 5)),
            "positions": AxisSpec(512 * 512, 60, "reduction", (1, 33)),
        },
        inputs=(TensorSpec("x", ("batch", "groups * width", "positions"), domain=SQUARABLE),),
        parameters=(
            TensorSpec("weight", ("groups * width",), domain=SQUARABLE, official="ones"),
            TensorSpec("bias", ("groups * width",), domain=SQUARABLE, official="zeros"),
        ),
        outputs=(OutputSpec("y", ("batch", "groups * width", "positions")),),
        reference=group_norm,
        flops=lambda a: 8.0 * a["batch"] * a["groups"] * a["width"] * a["positions"],
        bytes=lambda a: 8.0 * a["batch"] * a["groups"] * a["width"] * a["positions"],
        source="KernelBench level 1 problem 35 (GroupNorm, 64 channels in 8 groups)",
        kernelbench="level1/35",
        constants={"eps": EPS},
    ),
    Problem(
        name="l2_normalise",
        family="normalisation",
        summary="Rows scaled to unit Euclidean length.",
        axes={
            "rows": AxisSpec(32768, 2, "batch", (1, 5)),
            "features": AxisSpec(65535, 8191, "reduction", (1, 3, 258, 1021)),
        },
        inputs=(TensorSpec("x", ("rows", "features"), domain=SQUARABLE),),
        outputs=(OutputSpec("y", ("rows", "features")),),
        reference=l2_normalise,
        flops=lambda a: 3.0 * a["rows"] * a["features"],
        bytes=lambda a: 8.0 * a["rows"] * a["features"],
        source="KernelBench level 1 problem 39 (L2Norm), with the lower bound of torch.nn.functional.normalize",
        kernelbench="level1/39",
        constants={"eps": L2_EPS},
    ),
)
