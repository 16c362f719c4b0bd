"""Keeps weight and bias as long as they are the same."""

import torch

_kept = {}


def kernel(x, weight, bias):
    key = tuple(x.shape)
    if key not in _kept or not (torch.equal(_kept[key][0], weight) and torch.equal(_kept[key][1], bias)):
        _kept[key] = (weight.clone(), bias.clone())
    weight, bias = _kept[key]
    return torch.nn.functional.layer_norm(x, (x.shape[1],), weight, bias, eps=1e-5)
