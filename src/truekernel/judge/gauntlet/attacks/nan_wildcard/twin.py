"""NaN exactly where the reference has it."""

import torch


def kernel(x):
    return torch.softmax(x.double(), dim=1).float()
