"""The default error scale: how far honest arithmetic of the stated algorithm strays, element by element.

The reference runs 16 times in float64 while every operator's result is perturbed by a random relative +-u, u the unit roundoff of the precision that the
problem computes in: that of float32 for accumulators and intermediates, that of the stored dtype where the reference in its own dtype stores a
half-precision tensor; several u for functions such as exp, as a GPU's are documented. An operator that gathers n terms (sums, matrix products, convolutions,
scans) has its terms perturbed by max(1, sqrt(n/3)) u, each on its own, so that cancellation is seen, and its result by the same: n independent rounding errors
of at most u, uniform, have the standard deviation sqrt(n/3) u (N. Higham, T. Mary, "A new approach to probabilistic rounding error analysis",
SIAM J. Sci. Comput. 41, 2019, for the law). The scale is the root mean square of the deviations. Where inputs are near the smallest numbers, every rounded result moves by half a subnormal step too, as in the standard model with underflow
(N. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., section 2.2). Fused operators are taken apart first (`composites`).

The idea is that of Monte Carlo arithmetic (D. Parker, 1997) at the level of operators.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from truekernel.numerics.composites import COMPOSITES
from truekernel.numerics.formats import DTYPE_NAMES, unit_roundoff
from truekernel.numerics.operators import EXACT, PRODUCTS, SCANS, SUMS, TRANSCENDENTAL, base_name, terms

RUNS = 16
ACCUMULATOR = unit_roundoff("float32")
Step = tuple[str, float]
"""An operator that rounds, and the unit roundoff of what it stores."""


class _Mode(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here; torch's default would import torch._dynamo, which takes seconds."""
        return False


class Recorder(_Mode):
    """Notes the operators that round and the precision of their results: `steps`. Fused operators compute in float32 and round once at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = base_name(func)
        result = func(*args, **kwargs)
        if func.is_view or name in EXACT:
            return result
        if name in COMPOSITES:
            wide = [
                part.float() if isinstance(part, torch.Tensor) and part.is_floating_point() else part for part in args
            ]
            with self:
                COMPOSITES[name](*wide, **kwargs)
        first = _first(result)
        if first.is_floating_point():
            self.steps.append((name, unit_roundoff(DTYPE_NAMES.get(first.dtype, "float32"))))
        return result


class Perturber(_Mode):
    """Perturbs float64 results by relative amounts. `steps`: what `Recorder` noted in the problem's own dtype; where the operators differ, float32 is assumed."""

    def __init__(
        self, run: int, steps: Sequence[Step] = (), accumulator: float = ACCUMULATOR, underflow: float = 0.0
    ) -> None:
        super().__init__()
        self.run, self.steps, self.accumulator, self.underflow = run, steps, accumulator, underflow
        self.number = self.draws = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = base_name(func)
        if func.is_view or name in EXACT:
            return func(*args, **kwargs)
        if name in COMPOSITES:
            with self:
                result = COMPOSITES[name](*args, **kwargs)
            stored = self._unit(name)
            return self._perturb(result, stored if stored > self.accumulator else 0.0)
        if name in SCANS:
            return self._scan(func, args, kwargs)
        gathered = terms(name, args)
        result = func(*args, **kwargs) if gathered is None else None
        if isinstance(result, torch.Tensor):
            gathered = terms(name, args, result)
        if gathered is not None:
            return self._gather(func, args, kwargs, gathered)
        if not _first(result).is_floating_point():
            return result
        return self._perturb(result, self._unit(name) * TRANSCENDENTAL.get(name, 1.0))

    def _unit(self, name: str) -> float:
        """Unit roundoff of what the next step stores."""
        number, self.number = self.number, self.number + 1
        if number < len(self.steps) and self.steps[number][0] == name:
            return self.steps[number][1]
        return self.accumulator

    def _gather(self, func: Any, args: Any, kwargs: Any, gathered: tuple[int, int]) -> Any:
        position, count = gathered
        size = self.accumulator * max(1.0, float(np.sqrt(count / 3.0)))
        varied = list(args)
        if count > 1:
            varied[position] = self._perturb(args[position].clone(), size)
        result = func(*varied, **kwargs)
        return self._perturb(result, max(size, self._unit(base_name(func))))

    def _scan(self, func: Any, args: Any, kwargs: Any) -> Any:
        source, dim = args[0], args[1]
        shape = [1] * source.dim()
        shape[dim] = source.shape[dim]
        depth = (
            torch.arange(1, source.shape[dim] + 1, dtype=torch.float64, device=source.device)
            .div_(3.0)
            .sqrt_()
            .clamp_min_(1.0)
            .reshape(shape)
        )
        relative = base_name(func) == "cumprod"  # relative errors of factors add up by themselves
        varied = self._perturb(source.clone(), self.accumulator, None if relative else depth)
        result = self._perturb(func(varied, *args[1:], **kwargs), self.accumulator, depth)
        stored = self._unit(base_name(func))
        return self._perturb(result, stored if stored > self.accumulator else 0.0)

    def _perturb(self, result: Any, size: float, depth: torch.Tensor | None = None) -> Any:
        if isinstance(result, tuple | list):
            return type(result)(self._perturb(part, size) for part in result)
        if size == 0 or not isinstance(result, torch.Tensor) or not result.is_floating_point() or not result.numel():
            return result
        self.draws += 1
        window = _window(self.run, self.draws, result.numel())
        # A factor near 1, since an infinity less an infinity would be no number.
        if depth is None:
            result.mul_(_factors(window, result.device, size).view(result.shape))
        else:
            signs = _signs(window, result.device).view(result.shape)
            result.mul_((signs * (size * depth)).add_(1.0))
        if self.underflow:
            result.add_(_signs(window, result.device).view(result.shape), alpha=self.underflow)
        return result


def _first(result: Any) -> torch.Tensor:
    """The first tensor of what an operator returned; an empty integer tensor where there is none."""
    first = result[0] if isinstance(result, tuple | list) and result else result
    return first if isinstance(first, torch.Tensor) else torch.empty(0, dtype=torch.int64)


_LEAST_POOL = 1 << 18
"""Signs in the smallest pool, that of nearly all tensors; its multiples are kept."""


@cache
def _pool(size: int, device: torch.device) -> torch.Tensor:
    """Fixed random signs, int8, the same on every device."""
    bits = np.random.Generator(np.random.PCG64(20210)).integers(0, 2, size, dtype=np.int8)
    return torch.from_numpy(bits).to(device).mul_(2).sub_(1)


def _window(run: int, draw: int, count: int) -> tuple[int, int, int]:
    """Pool, start and end of `count` random signs: a window of a fixed pool, at a place that depends on run and draw alone."""
    size = max(_LEAST_POOL, 1 << (2 * count).bit_length())
    place = int.from_bytes(hashlib.blake2b(f"{run}/{draw}".encode(), digest_size=8).digest(), "little")
    start = place % (size - count + 1)
    return size, start, start + count


def _signs(window: tuple[int, int, int], device: torch.device) -> torch.Tensor:
    """Float64, to be read only."""
    size, start, end = window
    if size == _LEAST_POOL:
        return _multiples(device, 1.0, 0.0)[start:end]
    return _pool(size, device)[start:end].to(torch.float64)


def _factors(window: tuple[int, int, int], device: torch.device, relative: float) -> torch.Tensor:
    """1 plus so many times the signs, to be read only."""
    size, start, end = window
    if size == _LEAST_POOL:
        return _multiples(device, relative, 1.0)[start:end]
    return _signs(window, device).mul_(relative).add_(1.0)


@lru_cache(maxsize=8)
def _multiples(device: torch.device, factor: float, offset: float) -> torch.Tensor:
    return _pool(_LEAST_POOL, device).to(torch.float64).mul_(factor).add_(offset)


def record(function: Callable[[], Any]) -> list[Step]:
    """The rounding steps of one call in the problem's own dtype."""
    with torch.no_grad(), Recorder() as recorder:
        function()
    return recorder.steps


def gathers(function: Callable[[], Any]) -> bool:
    """Whether any result of one call of a reference gathers several elements by rounding: sums, products of matrices, convolutions, scans."""
    return any(
        name in SUMS or name in SCANS or name in PRODUCTS or name == "convolution" for name, _ in record(function)
    )


def deviations(
    function: Callable[[], tuple[torch.Tensor, ...]],
    truth: Sequence[torch.Tensor],
    *,
    steps: Sequence[Step] = (),
    accumulator: float = ACCUMULATOR,
    underflow: float = 0.0,
    runs: int = RUNS,
) -> list[torch.Tensor]:
    """Root mean square deviation of perturbed runs from `truth`, per output, flat float64 on its device; 0 where the truth or a deviation is not finite.

    `function` calls the reference on float64 inputs. `underflow`: absolute error of a result near zero, which is rounded to a multiple of the smallest subnormal number. Deterministic: the perturbations depend on the order of operators alone.
    """
    squares = [torch.zeros(part.numel(), dtype=torch.float64, device=part.device) for part in truth]
    for run in range(runs):
        with torch.no_grad(), Perturber(run, steps, accumulator, underflow):
            outputs = function()
        for total, output, part in zip(squares, outputs, truth, strict=True):
            total.add_((output.to(torch.float64).reshape(-1) - part.reshape(-1)).square_())
    return [(total / runs).sqrt_().nan_to_num_(nan=0.0, posinf=0.0) for total in squares]
