"""Problem files in the form of KernelBench, written for these tests: good ones, and ones that misbehave."""

from __future__ import annotations

NORM = """
import torch

class Model(torch.nn.Module):
    def __init__(self, features, groups):
        super().__init__()
        self.norm = torch.nn.GroupNorm(groups, features)

    def forward(self, x):
        return self.norm(x)

batch, features, groups, dim1, dim2 = 112, 64, 8, 512, 512

def get_inputs():
    return [torch.rand(batch, features, dim1, dim2)]

def get_init_inputs():
    return [features, groups]
"""
SOFTMAX = '''
import torch

class Model(torch.nn.Module):
    """Softmax of rows.

    More about it."""
    def forward(self, x):
        return torch.softmax(x, dim=1)

batch_size = 4096
dim = 393216

def get_inputs():
    return [torch.rand(batch_size, dim)]

def get_init_inputs():
    return []
'''

CONV = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, channels, filters, kernel, stride):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, kernel, stride=stride, padding=1)

    def forward(self, image):
        return self.conv(image)

batch, channels, filters = 8, 3, 16
kernel = 3
stride = 2
sides = (64, 48)

def get_inputs():
    return [torch.rand(batch, channels, *sides)]

def get_init_inputs():
    return [channels, filters, kernel, stride]
"""

TARGETS = """
import torch

class Model(torch.nn.Module):
    def forward(self, logits, targets, mask):
        return torch.nn.functional.cross_entropy(logits, targets, reduction="none") * mask

rows = 1 << 12
classes = 10 * 100

def get_inputs():
    return [torch.randn(rows, classes), torch.randint(0, classes, (rows,)), torch.randint(0, 2, (rows,)).bool()]

def get_init_inputs():
    return []
"""

DERIVED = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(width) * 0.5)
        self.throwaway = torch.nn.Linear(3, 3)
        torch.nn.init.constant_(self.throwaway.weight, 2.0)
        self.register_buffer("shift", torch.arange(width).float())

    def forward(self, p, sign, factor):
        return (p * self.scale + self.shift) * sign * factor + self.throwaway.weight.sum() + self.throwaway.bias.sum()

N = 8
W = 5

def get_inputs():
    scale = torch.rand(())
    return [(torch.rand(N, W) * scale).softmax(dim=-1), torch.randint(0, 2, (N, 1)).float() * 2 - 1, 3.5]

def get_init_inputs():
    return [W]
"""

ARGMIN = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.argmin(x, dim=1)

B, R, S = 16, 300, 7

def get_inputs():
    return [torch.rand(B, R, S)]

def get_init_inputs():
    return []
"""

SCAN = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=1)

rows, length = 64, 512

def get_inputs():
    return [torch.rand(rows, length)]

def get_init_inputs():
    return []
"""

IN_PLACE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x.mul_(2.0).sum(dim=1)

rows = 6

def get_inputs():
    return [torch.rand(rows, 4)]

def get_init_inputs():
    return []
"""

_FORM = """
import torch
{before}
class Model(torch.nn.Module):
    def forward(self, x):
        {forward}

def get_inputs():
    {inputs}

def get_init_inputs():
    return []
"""


def hostile(
    before: str = "", forward: str = "return x", inputs: str = "return [torch.rand(4)]", *, without: str = ""
) -> str:
    """A problem file with a fault. `without`: a name that it does not define."""
    text = _FORM.format(before=before, forward=forward, inputs=inputs)
    return text.replace(without, f"not_{without}") if without else text


GOOD = {
    "1_Softmax": SOFTMAX,
    "2_Conv": CONV,
    "3_Targets": TARGETS,
    "4_Derived": DERIVED,
    "5_Argmin": ARGMIN,
    "6_Scan": SCAN,
    "7_In_place": IN_PLACE,
}

HANGS = hostile("while True: pass")
HOSTILE = {
    "11_Raises": (hostile("raise ValueError('of all things')"), "it raises ValueError: of all things"),
    "13_No_model": (hostile(without="Model"), "defines no Model"),
    "14_Numbers": (hostile(forward="return 3"), "forward returns a int"),
    "15_No_list": (hostile(inputs="return torch.rand(4)"), "get_inputs returns Tensor, not a list"),
    "16_Objects": (hostile(inputs="return [torch.rand(4), object()]"), "input 1 is a object"),
    "17_Dropout": (hostile(forward="return torch.nn.functional.dropout(x)"), "draws random numbers"),
    "18_Values": (hostile(forward="return x * x.sum().item()"), "needs values, not shapes alone"),
    "19_Exits": (hostile("import os; os._exit(0)"), "ended without an answer (status 0)"),
    "20_Syntax": ("def oops(:", "SyntaxError"),
    "21_Complex": (hostile(forward="return torch.fft.fft(x)"), "complex64"),
    "22_Memory": (hostile("import numpy\nhuge = numpy.ones(1 << 40)"), "memory"),
    "23_Shuffled": (hostile(inputs="return [torch.randperm(8).float() / 8]"), "randperm"),
    "24_Nothing": (hostile(inputs="return [3]"), "no tensor"),
}


def write(root, files, level=1):
    """A checkout with these problem files."""
    folder = root / "KernelBench" / f"level{level}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return root
