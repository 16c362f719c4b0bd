"""Another way for some lengths, and right on all."""

import torch


def kernel(x):
    if x.shape[1] % 2:
        return torch.softmax(x.double(), dim=1).float()
    return torch.softmax(x, dim=1)
