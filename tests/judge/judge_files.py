"""Small files that tests hand in."""

REFERENCE = """
import torch

batch = 4
wide = 48
narrow = 24


class Model(torch.nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = torch.nn.Linear(wide, narrow)

    def forward(self, x):
        return torch.tanh(self.linear(x))


def get_inputs():
    return [torch.rand(batch, wide)]


def get_init_inputs():
    return [wide, narrow]
"""

MODEL = """
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = torch.nn.Linear(wide, narrow)

    def forward(self, x):
        return {result}
"""

PLAIN_REFERENCE = """
import torch

rows = 6
columns = 40


def reference(x, y):
    return torch.exp(-x * x) + y


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(rows, columns)]
"""

ZERO_REFERENCE = """
import torch

rows = 6
columns = 40


def reference(x):
    return torch.relu(-x.abs()) * x


def get_inputs():
    return [torch.randn(rows, columns)]
"""

SOLVE = """
#include <cuda_runtime.h>

__global__ void elu(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : expm1f(x[i]);
}

extern "C" void solve(const float* x, float* y, int B, int D) {
    int n = B * D;
    elu<<<(n + 255) / 256, 256>>>(x, y, n);
}
"""


def model(result="torch.tanh(self.linear(x))"):
    return MODEL.format(result=result)
