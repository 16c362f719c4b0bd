"""Replaces a function of its own."""

import torch


def _plain(x):
    return torch.softmax(x, dim=1)


def _stable(x):
    y = torch.exp(x - x.amax(dim=1, keepdim=True))
    return y / y.sum(dim=1, keepdim=True)


_plain.__code__ = _stable.__code__


def kernel(x):
    return _plain(x)
