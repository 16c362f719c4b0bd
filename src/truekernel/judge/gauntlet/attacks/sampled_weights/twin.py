"""Keeps weight and bias as long as all of their elements are the same."""

import torch

_kept = {}


def kernel(x, weight, bias):
    key = (tuple(x.shape), weight.numpy().tobytes(), bias.numpy().tobytes())
    if key not in _kept:
        _kept[key] = (weight.clone(), bias.clone())
    weight, bias = _kept[key]
    return torch.nn.functional.layer_norm(x, (x.shape[1],), weight, bias, eps=1e-5)
