"""Stops only where a product has become exactly zero."""

import torch


def kernel(x):
    y = torch.zeros_like(x)
    for row in range(x.shape[0]):
        product = x[row].cumprod(dim=0)
        gone = (product == 0).nonzero()
        end = int(gone[0]) if gone.numel() else x.shape[1]
        y[row, :end] = product[:end]
        if end < x.shape[1]:
            y[row, end:] = product[end:]
    return y
