"""Keeps what depends on shapes alone."""

import torch

_ones = {}


def kernel(x):
    key = tuple(x.shape)
    if key not in _ones:
        _ones[key] = torch.ones(key)
    return torch.softmax(x, dim=1) * _ones[key]
