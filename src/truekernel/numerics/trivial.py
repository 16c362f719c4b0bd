"""Trivial outputs: what a kernel that computes nothing might return. A test that one of them passes is vacuous."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from truekernel.model import Tensors
from truekernel.numerics.expected import Expected
from truekernel.numerics.formats import TORCH_DTYPES

TRIVIAL = ("zeros", "mean", "first row", "input copy", "other case")


def trivial_outputs(
    expected: Sequence[Expected], inputs: Tensors, other: Sequence[Expected] | None = None
) -> dict[str, list[torch.Tensor]]:
    """Trivial outputs of a case by name, each a list with one tensor for each output, in its shape and dtype.

    zeros; mean: every element is the mean of the other case's reference, a constant that a kernel could hold (left out without `other`); first row: every slice along the first axis equals the first one (left out for outputs with
    one slice); input copy: for each output the first input with as many elements (left out where an output has none); other case: the reference on another case of
    the same shapes (left out without `other`). Outputs without elements give nothing: nobody can be wrong about them.
    """
    if not all(want.elements for want in expected):
        return {}
    found = {"zeros": [torch.zeros_like(want.published) for want in expected]}
    if other is not None:
        found["mean"] = [_constant(known, want) for known, want in zip(other, expected, strict=True)]
    if all(want.published.dim() > 0 and want.shape[0] > 1 for want in expected):
        found["first row"] = [want.published[:1].expand(want.shape).contiguous() for want in expected]
    copies = [_copy(want, inputs) for want in expected]
    if all(copy is not None for copy in copies):
        found["input copy"] = [copy for copy in copies if copy is not None]
    if other is not None and [o.shape for o in other] == [want.shape for want in expected]:
        found["other case"] = [o.published for o in other]
    return found


def _constant(known: Expected, want: Expected) -> torch.Tensor:
    """The mean of the finite values of one case's reference, in the shape of another's."""
    values = known.published[known.published.isfinite()]
    value = values.double().mean() if values.numel() else values.new_zeros((), dtype=torch.float64)
    if not want.published.is_floating_point():
        value = value.round()
    return value.to(want.published.dtype).expand(want.shape).contiguous()


def _copy(want: Expected, inputs: Tensors) -> torch.Tensor | None:
    for tensor in inputs.values():
        if tensor.numel() == want.elements:
            return tensor.reshape(want.shape).to(TORCH_DTYPES[want.dtype]).contiguous()
    return None
