"""Uses a subclass inside, returns a plain tensor."""

import torch


class Named(torch.Tensor):
    pass


def kernel(x):
    return torch.softmax(x.as_subclass(Named), dim=1).as_subclass(torch.Tensor)
