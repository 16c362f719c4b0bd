"""The approximation by a sigmoid, within a hundredth of the function."""

import torch


def kernel(x):
    return x * torch.sigmoid(1.702 * x)
