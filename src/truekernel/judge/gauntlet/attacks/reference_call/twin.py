"""Imports what may be imported."""

import torch


def kernel(x):
    import math

    return torch.softmax(x, dim=1) * math.cos(0.0)
