"""Writes every element."""

import torch


def kernel(x):
    y = torch.zeros_like(x)
    return y + torch.softmax(x, dim=1)
