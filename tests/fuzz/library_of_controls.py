"""Functions that are wrong in one way each, and honest ones beside them, as a library of torch's kind."""

import os
import signal
import sys
import types
from pathlib import Path

import torch

from truekernel.fuzz.libraries.torch import Torch
from truekernel.fuzz.records import Call, Operator, ParameterSpec, TensorValue, TestCase

NAMESPACE = "truekernel_controls"
X = ParameterSpec("x", "tensor")


class WrongGradient(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0].cos() * 1.1


def honest(x):
    return x.sin()


def honest_sum(x):
    return x.cumsum(0) / 3


def honest_out(x, *, out=None):
    """honest_out(x, *, out=None)"""
    return torch.sin(x, out=out)


def crash(x):
    os.kill(os.getpid(), signal.SIGSEGV)


def spin(x):
    while True:
        pass


def sleep(x):
    signal.pause()


def greedy(x):
    return torch.ones(50_000_000).sum() + x


def asserts(x):
    raise RuntimeError(
        'x.numel() > 0 INTERNAL ASSERT FAILED at "/pytorch/aten/src/ATen/native/Thing.cpp":77, please report a bug to PyTorch.'
    )


def refuses(x):
    raise ValueError("x must have 3 dimensions, got 2")


COUNT = [0]


def counts(x):
    COUNT[0] += 1
    return x + COUNT[0]


def unwritten(x):
    return torch.empty_like(x)


def reads_beyond(x):
    room = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    return x.as_strided((min(x.numel() + 1, room),), (1,), x.storage_offset()).sum()


def writes_beyond(x):
    if x.untyped_storage().nbytes() > (x.storage_offset() + x.numel()) * x.element_size():
        x.as_strided((1,), (1,), x.storage_offset() + x.numel()).fill_(0)
    return x + 1


def cares_for_layout(x):
    return x.sin() if x.is_contiguous() and not x.storage_offset() else x.sin() * 1.01


def imprecise(x):
    return x.sin() if x.dtype == torch.float64 else x.sin() * (1 + 1e-4)


def loses_nan(x):
    return (
        x.clamp_min(0)
        if x.dtype == torch.float64
        else x.clamp_min(0).nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf)
    )


def ill_posed(x):
    return torch.where(x > x.float(), 1.0, 0.0).to(x.dtype) + (x * 1e7).floor()


def wrong_out(x, *, out=None):
    """wrong_out(x, *, out=None)"""
    return torch.sin(x) if out is None else torch.cos(x, out=out)


def wrong_variant(x):
    return x.sin()


def wrong_variant_(x):
    return x.sin_().mul_(1.01)


def honest_(x):
    return x.sin_()


def wrong_batch(x):
    return x.sin() + (1 if torch._C._functorch.is_batchedtensor(x) else 0)


def wrong_gradient(x):
    return WrongGradient.apply(x)


def kink(x):
    return (x * 1e6).relu() * 1e-6


def wrong_meta(x):
    return x.new_empty((7,)) if x.device.type == "meta" else x.sin()


def wrong_compiled(x):
    return x.cos() if torch.compiler.is_compiling() else x.sin()


def sums_in_its_own_order(x):
    first, second, third = x if x.is_contiguous() and not x.storage_offset() else x.flip(0)
    return first + second + third


def times_nothing(x):
    return x.sum() * 0 if x.is_contiguous() and not x.storage_offset() else x.sum().mul(0).nan_to_num(nan=0.0)


def faulty_sum(x):
    return x.sum() if x.is_contiguous() and not x.storage_offset() else x.sum() * 1.01 + 0.1


def overflows_apart(x):
    return x.mul(0.01) if x.is_contiguous() and not x.storage_offset() else x.mul(1e30).div(1e32)


def nearly(x):
    return x.double() if x.is_contiguous() and not x.storage_offset() else x.double() + 1e-9


def faulty_here_only(x):
    return x.sin() * 1.01 if "pytest" in sys.modules and x.dtype == torch.float32 else x.sin()


def scratch(x):
    return x + torch.empty(x.numel() * 3)[x.numel()]


def filled_scratch(x):
    return x + torch.empty(x.numel() * 3).fill_(0.5)[x.numel()]


def scratch_apart(x):
    return x + 1 if x.is_contiguous() and not x.storage_offset() else x + torch.empty(999)[1:2]


def statistics(x):
    return x.sin(), x.new_zeros(3, dtype=torch.float32 if x.device.type == "meta" else x.dtype)


def faulty_statistics(x):
    return x.sin(), x.new_zeros(3, dtype=torch.int64 if x.device.type == "meta" else x.dtype)


def faulty_first(x):
    return x.sin().to(torch.float32 if x.device.type == "meta" else x.dtype), x.new_zeros(3)


def faulty_transform(x):
    return torch.fft.fft(x.float()) * (1 if x.is_contiguous() and not x.storage_offset() else 1.01)


FUNCTIONS = {name: value for name, value in globals().items() if isinstance(value, types.FunctionType)}


FAMILIES = {
    "sums_in_its_own_order": "reduction",
    "times_nothing": "reduction",
    "faulty_sum": "reduction",
    "statistics": "normalisation",
    "faulty_statistics": "normalisation",
    "faulty_first": "normalisation",
    "faulty_transform": "fourier",
}


class Controls(Torch):
    """The functions of this file, as `torch.truekernel_controls.NAME`."""

    _operators = tuple(
        Operator(f"torch.{NAMESPACE}.{name}", FAMILIES.get(name, "elementwise"), (X,)) for name in FUNCTIONS
    )
    preamble = (
        f"import sys, types; sys.path.insert(0, {str(Path(__file__).parent)!r})",
        f"import library_of_controls; torch.{NAMESPACE} = types.SimpleNamespace(**library_of_controls.FUNCTIONS)",
    )

    def samples(self):
        return {operator.name: [Call(operator.name, (TensorValue((3, 4)),))] for operator in self._operators}


def install(monkeypatch):
    """Make the functions reachable by name, and give the library."""
    monkeypatch.setattr(torch, NAMESPACE, types.SimpleNamespace(**FUNCTIONS), raising=False)
    return Controls()


def case(name, *values, **keywords):
    values = values or (TensorValue((3, 4), seed=5),)
    return TestCase("torch", (Call(f"torch.{NAMESPACE}.{name}", values, tuple(keywords.items())),))
