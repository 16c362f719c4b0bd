"""Registers something for its end."""

import atexit

import torch

atexit.register(print, "done")


def kernel(x):
    return torch.softmax(x, dim=1)
