"""Keeps a buffer for each shape, and fills it anew."""

import torch

_buffers = {}


def kernel(x):
    key = tuple(x.shape)
    if key not in _buffers:
        _buffers[key] = torch.empty(key)
    _buffers[key].copy_(torch.softmax(x, dim=1))
    return _buffers[key].clone()
