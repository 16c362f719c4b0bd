"""Changes a switch that its result does not depend on."""

import torch

torch.set_printoptions(precision=3)


def kernel(x):
    return torch.softmax(x, dim=1)
