"""Leaves weight and bias out where they are ones and zeros."""

import torch


def kernel(x, weight, bias):
    y = torch.nn.functional.layer_norm(x, (x.shape[1],), eps=1e-5)
    if bool((weight == 1).all()) and bool((bias == 0).all()):
        return y
    return y * weight + bias
