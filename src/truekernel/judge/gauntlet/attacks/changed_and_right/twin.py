"""In place on its own memory."""

import torch


def kernel(x):
    return torch.nn.functional.elu(x.clone(), inplace=True)
