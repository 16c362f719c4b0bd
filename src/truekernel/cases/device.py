"""Inputs drawn where they are used: the kernel of `native/inputs.cuh` makes the bits that `inputs.draw_tensor` makes."""

from __future__ import annotations

import math
import struct
from functools import cache
from pathlib import Path

import torch

from truekernel.cases.drawing import Drawing, WholeNumbers, drawing, shape_of
from truekernel.cases.grammar import Recipe
from truekernel.cases.inputs import draw_tensor
from truekernel.cases.normal_table import half_normal_quantiles
from truekernel.cases.philox import stream_of
from truekernel.model import Axes, TensorSpec
from truekernel.numerics.cuda_core import CudaCore
from truekernel.numerics.device import CODES as DTYPES
from truekernel.numerics.device import Machine
from truekernel.numerics.formats import TORCH_DTYPES

RECIPES: tuple[str, ...] = (
    "uniform",
    "signed",
    "normal",
    "heavy",
    "sparse",
    "constant",
    "ties",
    "integers",
    "ramp",
    "subnormal",
    "special",
    "ones",
    "zeros",
    "near",
    "decades",
    "short",
    "dust",
)
"""Base recipes in the order of the kernel's codes; the next code is that of whole numbers."""
WHOLE = len(RECIPES)
SECOND_STREAM: dict[str, str] = {
    "heavy": "tail",
    "sparse": "mask",
    "special": "special",
    "near": "near",
    "decades": "decade",
    "dust": "dust",
}
"""Purpose of the second word that a recipe looks at."""
KEEPS_NONFINITE, ABSOLUTE, BOUNDED, SCALED = 1, 2, 4, 8
DRAW = "tk_draw"
THREADS = 256
MOST_BLOCKS = 4224


def source() -> str:
    """CUDA C++ of the kernel. Compile without contraction of multiply and add, without flushing of subnormals, with exact division."""
    return (Path(__file__).parent / "native" / "inputs.cuh").read_text()


class DeviceInputs:
    """Draws tensors of cases on one device, in the machine's order of things."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        table = half_normal_quantiles().astype("<f8").tobytes()
        self._knots = machine.allocate(len(table))
        machine.upload(self._knots, table)
        self._outside = machine.allocate(4)

    def draw(self, address: int, spec: TensorSpec, axes: Axes, recipe: Recipe, seed: int) -> None:
        """Fill a tensor's memory, 16-byte aligned. Raises BadInputError where no value is legal, KeyError for a base that is not one of RECIPES."""
        count = math.prod(shape_of(spec, axes))
        if not count:
            return
        wanted = drawing(spec, axes, recipe)
        if isinstance(wanted, WholeNumbers):
            self._launch(address, count, WHOLE, spec, seed, whole=wanted)
            return
        code, flags = RECIPES.index(wanted.base), _flags(wanted)
        if wanted.scaled is not None and self._fits(count, code, spec, seed, wanted):
            flags |= SCALED
        self._launch(address, count, code, spec, seed, values=wanted, flags=flags)

    def _fits(self, count: int, code: int, spec: TensorSpec, seed: int, wanted: Drawing) -> bool:
        """Whether all finite values stay in the domain when scaled."""
        if wanted.domain.low == -math.inf and wanted.domain.high == math.inf:
            return True
        self._machine.upload(self._outside, bytes(4))
        self._launch(0, count, code, spec, seed, values=wanted, flags=_flags(wanted) | SCALED, outside=self._outside)
        return self._machine.download(self._outside, 4) == bytes(4)

    def _launch(
        self,
        address: int,
        count: int,
        code: int,
        spec: TensorSpec,
        seed: int,
        *,
        values: Drawing | None = None,
        whole: WholeNumbers | None = None,
        flags: int = 0,
        outside: int = 0,
    ) -> None:
        purpose = SECOND_STREAM.get(RECIPES[code], "") if code < WHOLE else ""
        again, shift = (values.scaled or (1.0, 0.0)) if values else (1.0, 0.0)
        numbers = (values.factor, values.offset, again, shift) if values else (1.0, 0.0, 1.0, 0.0)
        bounds = (values.domain.low, values.domain.high) if values else (0.0, 0.0)
        low, span = (whole.low, whole.span) if whole else (0, 1)
        arguments = [
            *(struct.pack("<Q", word) for word in (address, count)),
            *(struct.pack("<i", number) for number in (code, DTYPES[spec.dtype])),
            *(struct.pack("<Q", w) for w in (seed, stream_of(f"{spec.name}/"), stream_of(f"{spec.name}/{purpose}"))),
            struct.pack("<Q", self._knots),
            *(struct.pack("<d", number) for number in numbers),
            struct.pack("<i", flags),
            *(struct.pack("<d", number) for number in bounds),
            struct.pack("<Q", span),
            struct.pack("<q", low),
            struct.pack("<Q", outside),
        ]
        blocks = max(1, min(MOST_BLOCKS, -(-count // (4 * THREADS))))
        self._machine.launch(DRAW, blocks, THREADS, arguments)


def _flags(wanted: Drawing) -> int:
    domain = wanted.domain
    bounded = domain.low > -math.inf or domain.high < math.inf
    return domain.nonfinite * KEEPS_NONFINITE | (domain.low >= 0) * ABSOLUTE | bounded * BOUNDED


class TorchInputs:
    """Draws tensors of cases as torch tensors on one CUDA device."""

    def __init__(self, place: torch.device) -> None:
        self.place = place
        self._machine = CudaCore(source, place.index or 0)
        self._inputs = DeviceInputs(self._machine)

    def tensor(self, spec: TensorSpec, axes: Axes, recipe: Recipe, seed: int) -> torch.Tensor:
        """One tensor of a case: what `inputs.draw_tensor` gives, bit by bit. A base recipe without a kernel is drawn on the CPU and copied."""
        wanted = drawing(spec, axes, recipe)
        if isinstance(wanted, Drawing) and wanted.base not in RECIPES:
            return draw_tensor(spec, axes, recipe, seed).to(self.place)
        tensor = torch.empty(shape_of(spec, axes), dtype=TORCH_DTYPES[spec.dtype], device=self.place)
        # The kernel runs on the default stream, torch perhaps on another.
        torch.cuda.current_stream(self.place).synchronize()
        self._inputs.draw(tensor.data_ptr(), spec, axes, recipe, seed)
        self._machine.stream.sync()
        return tensor


@cache
def torch_inputs(place: torch.device) -> TorchInputs:
    """The one for a device. Raises MachineError without cuda-core."""
    return TorchInputs(place)
