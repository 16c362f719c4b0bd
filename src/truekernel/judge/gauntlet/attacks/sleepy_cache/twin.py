"""Counts its calls, and computes in each."""

import torch

_calls = []


def kernel(x):
    _calls.append(x.shape)
    return torch.softmax(x, dim=1)
