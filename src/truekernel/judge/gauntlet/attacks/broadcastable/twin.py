"""Stretches before it returns."""

import torch


def kernel(x):
    peak = x.amax(dim=1, keepdim=True).expand_as(x).contiguous()
    return torch.softmax(torch.where(peak.isfinite(), x - peak, x), dim=1)
