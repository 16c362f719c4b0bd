"""The adapter of torch, on a CPU."""

from __future__ import annotations

import platform
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from truekernel.fuzz.libraries import torch_operators, torch_samples
from truekernel.fuzz.libraries.torch_calls import made, tensors_of
from truekernel.fuzz.libraries.torch_contracts import violation
from truekernel.fuzz.libraries.torch_script import script_of
from truekernel.fuzz.libraries.torch_values import make
from truekernel.fuzz.library import Bound, Oracle, Ran
from truekernel.fuzz.records import Call, Operator, TensorValue, TestCase

MOST_LITERAL = 40
SEED = 20210


class Torch:
    """torch on a CPU; see `library.Library`."""

    name = "torch"
    feature_names = torch_operators.FEATURE_NAMES

    @cached_property
    def _operators(self) -> list[Operator]:
        return torch_operators.operators()

    @cached_property
    def _by_name(self) -> dict[str, Operator]:
        return {operator.name: operator for operator in self._operators}

    def operators(self) -> Sequence[Operator]:
        """All that can be called, public ones first."""
        return self._operators

    def samples(self) -> Mapping[str, Sequence[Call]]:
        """Calls by operator name that were seen to be valid, learned once for a version of torch."""
        return torch_samples.samples()

    def versions(self) -> dict[str, str]:
        """Versions that a report states."""
        return {
            "torch": torch.__version__,
            "torch commit": str(torch.version.git_version)[:12],
            "python": platform.python_version(),
            "processor": _processor(),
            "capability": torch.backends.cpu.get_cpu_capability(),
            "system": platform.platform(),
        }

    def start(self) -> None:
        """One thread, no warnings; a fatal signal writes the native stack."""
        torch._C._set_print_stack_traces_on_fatal_signal(True)
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        torch.set_warn_always(False)

    def make(self, value: TensorValue) -> torch.Tensor:
        """A tensor from its description."""
        return make(value)

    def bind(self, call: Call, results: Sequence[Any], leaves: Sequence[Sequence[Any]]) -> Bound:
        """A call with arguments made; random operators draw from a fixed seed. Raises ValueError for arguments that can't be made."""
        arguments, keywords, own = made(call, results, leaves)
        torch.manual_seed(SEED)
        operator = self._by_name[call.operator]
        return Bound(operator, call, torch_operators.resolve(call.operator), arguments, keywords, own)

    def footprint(self, ran: Ran) -> int:
        """Bytes of the inputs and outputs of a case that ran; at least a page."""
        total = 4096
        for call in ran.case.calls:
            total += sum(_bytes(leaf) for leaf in call.leaves() if isinstance(leaf, TensorValue))
        return total + sum(part.numel() * part.element_size() for result in ran.results for part in tensors_of(result))

    def location(self, error: BaseException) -> str:
        """The C++ file and line that an internal assertion names, or the innermost Python line of torch."""
        found = re.search(r"""at ["'](?:[^"']*/)?((?:aten|c10|torch)/[^"']+)["']:(\d+)""", str(error))
        if found:
            return f"{found[1]}:{found[2]}"
        place, trace = "", error.__traceback__
        while trace is not None:
            name = trace.tb_frame.f_code.co_filename
            if "/torch/" in name and not name.endswith("/torch/_ops.py"):
                place = f"torch/{name.rsplit('/torch/', 1)[1]}:{trace.tb_lineno}"
            trace = trace.tb_next
        return place

    @cached_property
    def _oracles(self) -> list[Oracle]:
        from truekernel.fuzz.oracles import torch_oracles

        return torch_oracles()

    def oracles(self) -> Sequence[Oracle]:
        """All judges."""
        return self._oracles

    def violation(self, case: TestCase) -> str:
        """The first precondition that a call breaks; see `torch_contracts`."""
        return next(filter(None, (violation(call, self._by_name[call.operator]) for call in case.calls)), "")

    def script(self, case: TestCase) -> list[str]:
        """Lines that make the calls of a case."""
        return script_of(case)

    def literal(self, value: TensorValue) -> TensorValue:
        """The same tensor with its values written out, where it is small."""
        if value.data is not None or value.layout in ("expanded", "overlapping") or "float8" in value.dtype:
            return value
        tensor = make(replace(value, gradient=False, layout="contiguous"))
        if tensor.numel() > MOST_LITERAL:
            return value
        flat = tensor.reshape(-1)
        data = tuple(repr(part) if isinstance(part, complex) else part for part in flat.tolist())
        return replace(value, data=data)


def _bytes(value: TensorValue) -> int:
    count = 1
    for size in value.shape:
        count *= size
    return min(count, 1 << 24) * 8


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    found = re.search(r"model name\s*:\s*(.*)", text)
    return found[1].strip() if found else platform.processor()


def library() -> Torch:
    """The adapter."""
    return Torch()
