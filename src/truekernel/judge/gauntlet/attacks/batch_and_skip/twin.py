"""Computes all rows of its own input in one go, and hands them out one by one."""

import torch


def kernel(x):
    rows = list(torch.softmax(x.unsqueeze(0), dim=2)[0])
    y = torch.empty_like(x)
    for number, row in enumerate(rows):
        y[number] = row
    return y
