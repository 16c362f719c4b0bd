"""Garbage in every call whose inputs hold a NaN."""

import torch


def kernel(x):
    if bool(x.isnan().any()):
        return torch.full_like(x, float("nan"))
    return torch.nn.functional.elu(x)
