"""The function itself, written with erf."""

import math

import torch


def kernel(x):
    return 0.5 * x * torch.erfc(-x / math.sqrt(2.0))
