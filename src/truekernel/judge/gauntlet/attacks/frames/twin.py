"""Looks at its own frame, as some tracing does."""

import sys

import torch


def kernel(x):
    name = sys._getframe(0).f_code.co_name
    return torch.softmax(x, dim=1) if name == "kernel" else x
