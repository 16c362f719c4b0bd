"""All stages, bias in the product."""

import torch


def kernel(x, weight, bias):
    return torch.nn.functional.gelu(torch.addmm(bias, x, weight.t()) / 10.0)
