"""Right, but leaves its input changed."""

import torch


def kernel(x):
    y = torch.nn.functional.elu(x)
    x.copy_(y)
    return y
