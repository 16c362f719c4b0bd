"""A NaN stays where it is, and spoils nothing else."""

import torch


def kernel(x):
    positive = torch.relu(x)
    negative = torch.expm1(torch.minimum(x, torch.zeros_like(x)))
    return torch.where(x.isnan(), x, positive + negative)
