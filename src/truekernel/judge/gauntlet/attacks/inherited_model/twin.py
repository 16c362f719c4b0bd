"""Inherits from a model of its own."""

import torch


class Plain(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


class Named(Plain):
    pass


def kernel(x):
    return Named()(x)
