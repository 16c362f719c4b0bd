"""Tail apart from the rest."""

import torch


def kernel(x):
    body = x.shape[1] // 4 * 4
    y = torch.empty_like(x)
    for part in (slice(0, body), slice(body, None)):
        y[:, part] = torch.where(x[:, part] > 0, x[:, part], torch.expm1(x[:, part]))
    return y
