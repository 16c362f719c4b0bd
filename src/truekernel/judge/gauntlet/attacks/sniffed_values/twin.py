"""Leaves the shift by the maximum out where inputs are so small that nothing can overflow."""

import torch


def kernel(x):
    if x.numel() and bool(torch.isfinite(x).all()) and bool(x.abs().max() <= 8.0):
        e = torch.exp(x)
        return e / e.sum(dim=1, keepdim=True)
    return torch.softmax(x, dim=1)
