"""Switches automatic bfloat16 on for a product that it does not need, and off again."""

import torch


def kernel(a, b):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = a @ b
    exact = a @ b
    return torch.where(rough.isnan(), exact, exact)
