"""Copies positive elements, computes the others."""

import torch


def kernel(x):
    return torch.where(x > 0, x, torch.expm1(x.clamp_max(0.0)))
