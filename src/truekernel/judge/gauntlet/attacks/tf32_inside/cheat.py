"""Drops the lower bits of its factors, as tensor cores do that round to TF32."""

import torch


def rounded(x):
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x0FFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)


def kernel(a, b):
    return rounded(a) @ rounded(b)
