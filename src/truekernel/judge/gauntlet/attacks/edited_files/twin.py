"""Writes a temporary file of its own, and reads it again."""

import tempfile

import torch


def kernel(x):
    with tempfile.TemporaryFile("w+") as file:
        file.write(str(x.shape[0]))
        file.seek(0)
        rows = int(file.read())
    return torch.softmax(x, dim=1).reshape(rows, -1)
