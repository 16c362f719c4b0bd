"""Takes memory as it comes, and writes all of it."""

import torch


def kernel(x):
    y = torch.empty_like(x)
    return torch.softmax(x, dim=1, out=y) if False else y.copy_(torch.softmax(x, dim=1))
