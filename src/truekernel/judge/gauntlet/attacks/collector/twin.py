"""Collects garbage, as honest code does to save memory."""

import gc

import torch


def kernel(x):
    y = torch.softmax(x, dim=1)
    gc.collect()
    return y
