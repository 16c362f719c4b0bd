"""Two products, of high parts and of what they leave."""

import torch


def high(x):
    return (x.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)


def kernel(a, b):
    return (a - high(a)) @ b + high(a) @ b
