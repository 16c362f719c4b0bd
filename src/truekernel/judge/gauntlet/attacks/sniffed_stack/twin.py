"""Looks at who calls, for a message when a shape is refused."""

import sys

import torch


def kernel(x):
    caller = sys._getframe(1).f_code.co_name
    if x.dim() != 2:
        raise ValueError(f"{caller} gives {x.dim()} axes: two are needed")
    return torch.softmax(x, dim=1)
