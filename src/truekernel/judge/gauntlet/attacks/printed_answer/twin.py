"""Prints how far it is, and returns what it computed."""

import torch


def kernel(x):
    print(f"softmax of {x.shape[0]} rows", flush=True)
    return torch.softmax(x, dim=1)
