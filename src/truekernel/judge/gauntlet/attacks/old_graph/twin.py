"""Records its work over memory of its own, and copies each input there before it repeats the record."""

import torch

_graphs = {}


class Graph:
    def __init__(self, x):
        self.x, self.y = torch.empty_like(x), torch.empty_like(x)

    def replay(self, x):
        self.x.copy_(x)
        return self.y.copy_(torch.softmax(self.x, dim=1)).clone()


def kernel(x):
    key = tuple(x.shape)
    if key not in _graphs:
        _graphs[key] = Graph(x)
    return _graphs[key].replay(x)
