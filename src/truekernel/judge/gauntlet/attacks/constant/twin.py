"""Constant where the inputs are."""

import torch


def kernel(x):
    shifted = x - x.amax(dim=1, keepdim=True)
    e = torch.exp(torch.where(x == float("-inf"), float("-inf"), shifted))
    return torch.softmax(x, dim=1) if not bool(torch.isfinite(e).all()) else e / e.sum(dim=1, keepdim=True)
