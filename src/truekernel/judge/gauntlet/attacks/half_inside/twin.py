"""Multiplies in three bfloat16 parts, which together hold what float32 holds."""

import torch


def parts(x):
    found = []
    for _ in range(3):
        found.append(x.to(torch.bfloat16).float())
        x = x - found[-1]
    return found


def kernel(a, b):
    first, second, third = parts(b)
    return a @ third + a @ second + a @ first
