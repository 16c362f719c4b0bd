"""Fused torch operators written in smaller ones, so that the error scale sees their intermediate results.

Each function takes the arguments of the operator of that name in `torch.ops.aten` and returns what it returns (of several results, those that
references use). The formulas are the definitions in torch's documentation, in the numerically stable order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

Tensor = torch.Tensor


def softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:  # noqa: ARG001
    """exp(x - max) / sum(exp(x - max))."""
    powers = torch.exp(x - x.amax(dim, keepdim=True))
    return powers / powers.sum(dim, keepdim=True)


def log_softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:  # noqa: ARG001
    """(x - max) - log(sum(exp(x - max)))."""
    shifted = x - x.amax(dim, keepdim=True)
    return shifted - torch.log(torch.exp(shifted).sum(dim, keepdim=True))


def logsumexp(x: Tensor, dim: list[int], keepdim: bool = False) -> Tensor:
    """log(sum(exp(x - max))) + max."""
    top = x.amax(dim, keepdim=True)
    top = torch.where(top.isinf(), torch.zeros_like(top), top)
    total = torch.log(torch.exp(x - top).sum(dim, keepdim=True)) + top
    return total if keepdim else total.squeeze(tuple(dim))


def _moments(x: Tensor, dims: list[int], correction: float = 0.0) -> tuple[Tensor, Tensor, Tensor]:
    """Centred values, mean and variance over `dims`, which are kept."""
    count = math.prod(x.shape[d] for d in dims)
    mean = x.mean(dims, keepdim=True)
    centred = x - mean
    divisor = count - correction
    variance = (centred * centred).sum(dims, keepdim=True) / (divisor if divisor > 0 else float("nan"))
    return centred, mean, variance


def layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise over the last axes, then scale and shift."""
    dims = list(range(x.dim() - len(shape), x.dim()))
    centred, mean, variance = _moments(x, dims)
    inverse = torch.rsqrt(variance + eps)
    return _affine(centred * inverse, weight, bias), mean, inverse


def group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, c: int, hxw: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise groups of channels, then scale and shift each channel."""
    centred, mean, variance = _moments(x.reshape(n, group, -1), [2])
    inverse = torch.rsqrt(variance + eps)
    normal = (centred * inverse).reshape(n, c, hxw)
    weight, bias = (part[:, None] if part is not None else None for part in (weight, bias))
    return _affine(normal, weight, bias).reshape(x.shape), mean.reshape(n, group), inverse.reshape(n, group)


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,  # noqa: ARG001
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise each channel with the batch's moments, or with the running ones outside of training."""
    shape = [1, -1] + [1] * (x.dim() - 2)
    if training or running_mean is None or running_var is None:
        centred, mean, variance = _moments(x, [0, *range(2, x.dim())])
    else:
        mean, variance = running_mean.reshape(shape), running_var.reshape(shape)
        centred = x - mean
    inverse = torch.rsqrt(variance + eps)
    weight, bias = (part.reshape(shape) if part is not None else None for part in (weight, bias))
    return _affine(centred * inverse, weight, bias), mean.reshape(-1), inverse.reshape(-1)


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    if weight is not None:
        x = x * weight
    return x + bias if bias is not None else x


def _dims(x: Tensor, dim: Any) -> list[int]:
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return list(range(x.dim()))
    return [d % x.dim() for d in (dim if isinstance(dim, list | tuple) else [dim])]


def var(
    x: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: float | None = None
) -> Tensor:
    """Two-pass variance."""
    dims = _dims(x, dim)
    by = correction if correction is not None else float(unbiased)
    variance = _moments(x, dims, by)[2]
    return variance if keepdim else variance.squeeze(tuple(dims))


def var_mean(
    x: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: float | None = None
) -> tuple[Tensor, Tensor]:
    """Two-pass variance, and the mean."""
    return var(x, dim, unbiased, keepdim, correction=correction), x.mean(_dims(x, dim), keepdim=keepdim)


def std(
    x: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: float | None = None
) -> Tensor:
    """Root of the two-pass variance."""
    return torch.sqrt(var(x, dim, unbiased, keepdim, correction=correction))


def vector_norm(x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:  # noqa: ARG001
    """Norms of order 1, 2 and infinity; others through powers."""
    dims, size = _dims(x, dim), x.abs()
    if ord == math.inf:
        return size.amax(dims, keepdim=keepdim)
    if ord == 1:
        return size.sum(dims, keepdim=keepdim)
    if ord == 2:
        return torch.sqrt((x * x).sum(dims, keepdim=keepdim))
    return size.pow(ord).sum(dims, keepdim=keepdim).pow(1.0 / ord)


def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """x Phi(x), or its tanh form."""
    if approximate == "tanh":
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * (x * x * x))))
    return 0.5 * x * (1.0 + torch.erf(x * math.sqrt(0.5)))


def silu(x: Tensor) -> Tensor:
    """x / (1 + exp(-x))."""
    return x / (1.0 + torch.exp(-x))


def elu(x: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """x where positive, alpha (exp(x) - 1) elsewhere. The difference is taken after rounding, as kernels without expm1 do."""
    negative = (torch.exp(torch.clamp_max(x * input_scale, 0.0)) - 1.0) * (alpha * scale)
    return torch.where(x > 0, x if scale == 1 else x * scale, negative)


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta, x itself above the threshold."""
    scaled = x if beta == 1 else x * beta
    soft = torch.log1p(torch.exp(torch.clamp_max(scaled, threshold)))
    return torch.where(scaled > threshold, x, soft if beta == 1 else soft / beta)


def mish(x: Tensor) -> Tensor:
    """x tanh(softplus(x))."""
    return x * torch.tanh(softplus(x))


def hardsigmoid(x: Tensor) -> Tensor:
    """clamp(x + 3, 0, 6) / 6."""
    return torch.clamp(x + 3.0, 0.0, 6.0) / 6.0


def hardswish(x: Tensor) -> Tensor:
    """x clamp(x + 3, 0, 6) / 6."""
    return x * torch.clamp(x + 3.0, 0.0, 6.0) / 6.0


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x where positive, slope x elsewhere."""
    return torch.where(x > 0, x, x * negative_slope)


def log_sigmoid(x: Tensor) -> tuple[Tensor, Tensor]:
    """min(x, 0) - log(1 + exp(-|x|)), and the exponential."""
    power = torch.exp(-x.abs())
    return torch.clamp_max(x, 0.0) - torch.log1p(power), power


def _reduced(loss: Tensor, reduction: int) -> Tensor:
    return loss if reduction == 0 else (loss.mean() if reduction == 1 else loss.sum())


def mse_loss(x: Tensor, y: Tensor, reduction: int = 1) -> Tensor:
    """(x - y)^2, reduced."""
    difference = x - y
    return _reduced(difference * difference, reduction)


def huber_loss(x: Tensor, y: Tensor, reduction: int = 1, delta: float = 1.0) -> Tensor:
    """Half the square near zero, linear beyond delta, reduced."""
    size = (x - y).abs()
    return _reduced(torch.where(size < delta, 0.5 * size * size, delta * (size - 0.5 * delta)), reduction)


def smooth_l1_loss(x: Tensor, y: Tensor, reduction: int = 1, beta: float = 1.0) -> Tensor:
    """Half the square over beta near zero, linear beyond beta, reduced."""
    size = (x - y).abs()
    return _reduced(
        size if beta == 0 else torch.where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta), reduction
    )


def bce_loss(x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1) -> Tensor:
    """Binary cross entropy of probabilities, logarithms not below -100."""
    loss = (target - 1.0) * torch.clamp_min(torch.log1p(-x), -100.0) - target * torch.clamp_min(torch.log(x), -100.0)
    return _reduced(loss if weight is None else loss * weight, reduction)


COMPOSITES: dict[str, Callable[..., Any]] = {
    "_softmax": softmax,
    "_log_softmax": log_softmax,
    "logsumexp": logsumexp,
    "native_layer_norm": layer_norm,
    "native_group_norm": group_norm,
    "native_batch_norm": batch_norm,
    "var": var,
    "var_mean": var_mean,
    "std": std,
    "linalg_vector_norm": vector_norm,
    "gelu": gelu,
    "silu": silu,
    "elu": elu,
    "softplus": softplus,
    "mish": mish,
    "hardsigmoid": hardsigmoid,
    "hardswish": hardswish,
    "leaky_relu": leaky_relu,
    "log_sigmoid_forward": log_sigmoid,
    "mse_loss": mse_loss,
    "huber_loss": huber_loss,
    "smooth_l1_loss": smooth_l1_loss,
    "binary_cross_entropy": bce_loss,
}
"""Operator name in torch.ops.aten -> the same in smaller operators."""
