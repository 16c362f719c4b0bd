"""Has a comparison of its own, which decides how it computes."""

import torch


def is_close(a, b):
    return bool((a - b).abs().max() <= 1e-3) if a.numel() else True


def kernel(x):
    peak = x.amax(dim=1, keepdim=True)
    return torch.softmax(x if is_close(peak, torch.zeros_like(peak)) else x + 0.0, dim=1)
