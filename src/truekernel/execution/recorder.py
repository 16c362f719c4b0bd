"""Turn a launch plan's function into data: run it once with handles instead of tensors and record what it asks for."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, NoReturn, cast

from truekernel.errors import BadInputError, PlanError
from truekernel.execution.plan_language import FILE, Stopped, Watch, compiled, scope
from truekernel.execution.scalars import TYPES, convert
from truekernel.model import (
    ITEM_BYTES,
    Axes,
    BufferArg,
    BufferSpec,
    Dim3,
    DType,
    Launch,
    LaunchPlan,
    Problem,
    Program,
    ScalarArg,
)
from truekernel.model.lengths import lengths
from truekernel.source import KernelSignature, Parameter

MOST_THREADS = 1024
MOST_BLOCK: Dim3 = (1024, 1024, 64)
MOST_GRID: Dim3 = (2**31 - 1, 65535, 65535)
MOST_SHARED = 227 * 1024
"""Limits of one launch on current GPUs (CUDA C++ Programming Guide, table "Technical specifications per compute capability")."""
MOST_BYTES = 1 << 34
MOST_LAUNCHES = 10_000
MOST_BUFFERS = 4096
MOST_RANK = 64
MOST_OFFSET = 1 << 46
"""Bytes; beyond it lies no address that a process can have."""
_EXPRESSION = re.compile(r"\s*(?:::)?([A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)\s*(?:<.*>)?\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Handle:
    """A device buffer in a plan, or a place inside one. `first`: elements that were skipped by `offset`."""

    buffer: int
    shape: tuple[int, ...]
    dtype: DType
    first: int = 0

    @property
    def elements(self) -> int:
        """Number of elements of the whole buffer."""
        return math.prod(self.shape)

    def offset(self, elements: int) -> Handle:
        """A pointer `elements` elements further on."""
        first = self.first + int(elements)
        if abs(first) * ITEM_BYTES[self.dtype] > MOST_OFFSET:
            raise PlanError("offset: the place is outside of any address space")
        return replace(self, first=first)


def trace(
    program: Program | str, signatures: Mapping[str, KernelSignature], problem: Problem, axes: Axes
) -> LaunchPlan:
    """Execute `launch(run, inputs, axes)` of a plan file and return what it recorded.

    `program`: a Program or the text of its plan file. `signatures`: the kernels of its source by name. The text sees arithmetic,
    `math` and a few built-in functions, and has a million steps; that keeps accidents out, it is no wall against attackers.
    Raises PlanError (one line, with the plan's line) for anything that a GPU would refuse to launch, or that raises.
    """
    text = program.plan_source if isinstance(program, Program) else program
    recorder = Recorder(signatures, problem, axes)
    result = _call(text, recorder, axes)
    return LaunchPlan(tuple(recorder.buffers), tuple(recorder.launches), recorder.outputs(result))


class Recorder:
    """The `run` of a launch plan: hands out buffers and takes launches down, in order."""

    def __init__(self, signatures: Mapping[str, KernelSignature], problem: Problem, axes: Axes) -> None:
        self._signatures = signatures
        self._problem = problem
        self._axes = axes
        self._bytes = 0
        self.buffers: list[BufferSpec] = []
        self.launches: list[Launch] = []
        named = {
            spec.name: self._add(spec.name, lengths(spec.shape, axes), spec.dtype, "input") for spec in problem.tensors
        }
        self.inputs: Mapping[str, Handle] = MappingProxyType(named)

    def empty(self, shape: int | Iterable[int], dtype: str = "float32") -> Handle:
        """A buffer that holds whatever the allocator left."""
        return self._new(shape, dtype, "empty")

    def zeros(self, shape: int | Iterable[int], dtype: str = "float32") -> Handle:
        """A buffer of zeros."""
        return self._new(shape, dtype, "zeros")

    def launch(
        self,
        kernel: str,
        grid: int | Iterable[int],
        block: int | Iterable[int],
        args: Iterable[Handle | float | None],
        shared: int = 0,
        cooperative: bool = False,
        stream: int = 0,
    ) -> None:
        """Launch `kernel` (a name expression: "softmax", "reduce<256, float>"). `shared`: dynamic shared memory in bytes."""
        sizes = _dim3("grid", grid, MOST_GRID), _dim3("block", block, MOST_BLOCK)
        threads = math.prod(sizes[1])
        if threads > MOST_THREADS:
            raise PlanError(f"block {sizes[1]} has {threads} threads: the limit is {MOST_THREADS}")
        if not isinstance(shared, int) or not 0 <= shared <= MOST_SHARED:
            raise PlanError(
                f"shared={_brief(shared)} bytes of dynamic shared memory: whole numbers from 0 to {MOST_SHARED} are legal"
            )
        if len(self.launches) >= MOST_LAUNCHES:
            raise PlanError(f"more than {MOST_LAUNCHES} launches")
        if not isinstance(stream, int) or not 0 <= stream < 2**31:
            raise PlanError(f"stream={_brief(stream)}: give a small whole number")
        self.launches.append(
            Launch(kernel, *sizes, self._arguments(kernel, tuple(args)), int(shared), bool(cooperative), int(stream))
        )

    def outputs(self, result: Any) -> tuple[int, ...]:
        """Buffer numbers of what the plan returned. Raises PlanError when they are not the problem's outputs."""
        handles = tuple(result) if isinstance(result, tuple | list) else (result,)
        wanted = self._problem.outputs
        if len(handles) != len(wanted) or not all(isinstance(h, Handle) for h in handles):
            names = ", ".join(spec.name for spec in wanted)
            raise PlanError(f"launch plan returned {_brief(result)}: return the buffers of its outputs ({names})")
        for handle, spec in zip(handles, wanted, strict=True):
            shape = lengths(spec.shape, self._axes)
            if handle.dtype != spec.dtype or handle.shape != shape or handle.first:
                got = f"{handle.dtype} {handle.shape}" + (f" from element {handle.first}" if handle.first else "")
                raise PlanError(f"launch plan: output '{spec.name}' is {got}, wanted {spec.dtype} {shape}")
        return tuple(handle.buffer for handle in handles)

    def _new(self, shape: int | Iterable[int], dtype: str, init: Literal["empty", "zeros"]) -> Handle:
        lengths = (shape,) if isinstance(shape, int) else tuple(shape)
        if not all(isinstance(n, int) and n >= 0 for n in lengths):
            raise PlanError(f"shape {_brief(lengths)}: lengths are whole numbers and not negative")
        if len(lengths) > MOST_RANK:
            raise PlanError(f"a buffer of {len(lengths)} dimensions: the limit is {MOST_RANK}")
        if dtype not in ITEM_BYTES:
            raise PlanError(f"dtype {_brief(dtype)}: known are {', '.join(ITEM_BYTES)}")
        return self._add(f"{init}{len(self.buffers)}", lengths, cast(DType, dtype), init)

    def _add(self, name: str, shape: tuple[int, ...], dtype: DType, init: Literal["input", "empty", "zeros"]) -> Handle:
        if len(self.buffers) >= MOST_BUFFERS:
            raise PlanError(f"more than {MOST_BUFFERS} buffers")
        spec = BufferSpec(name, shape, dtype, init)
        total = self._bytes + spec.nbytes
        if total > MOST_BYTES:
            raise PlanError(f"buffers of {total / 2**30:.1f} GiB in all: the limit is {MOST_BYTES >> 30} GiB")
        self._bytes = total
        self.buffers.append(spec)
        return Handle(len(self.buffers) - 1, shape, dtype)

    def _arguments(self, kernel: str, args: tuple[Any, ...]) -> tuple[BufferArg | ScalarArg, ...]:
        match = _EXPRESSION.fullmatch(kernel)
        if match is None:
            raise PlanError(f"'{kernel}' is not a kernel name: write name or name<arguments>")
        signature = self._signatures.get(match[1])
        if signature is None:
            raise PlanError(f"no kernel '{match[1]}': the source has {', '.join(self._signatures) or 'none'}")
        params = signature.bind(kernel).params
        if len(args) != len(params):
            raise PlanError(f"kernel '{match[1]}' takes {len(params)} arguments, {len(args)} given")
        return tuple(_argument(match[1], p, a) for p, a in zip(params, args, strict=True))


class Run:
    """What a plan sees of its recorder: it can ask for buffers and launches, and take nothing back."""

    __slots__ = ("empty", "inputs", "launch", "zeros")

    def __init__(self, recorder: Recorder) -> None:
        self.empty = recorder.empty
        self.zeros = recorder.zeros
        self.launch = recorder.launch
        self.inputs = recorder.inputs


def _argument(kernel: str, parameter: Parameter, value: Any) -> BufferArg | ScalarArg:
    where = f"argument '{parameter.name}' of '{kernel}'"
    if parameter.pointer:
        if isinstance(value, Handle):
            return BufferArg(value.buffer, value.first * ITEM_BYTES[value.dtype])
        if value is None:
            return ScalarArg("unsigned long long", 0)
        raise PlanError(f"{where} is a pointer, {_brief(value)} given: pass a buffer or None")
    if parameter.ctype not in TYPES:
        raise PlanError(f"{where} has type '{parameter.ctype}': only scalars and pointers can be passed")
    if not isinstance(value, int | float):
        raise PlanError(f"{where} is {parameter.ctype}, {_brief(value)} given: pass a number")
    try:
        return ScalarArg(parameter.ctype, convert(value, parameter.ctype))
    except (ValueError, OverflowError) as error:
        raise PlanError(f"{where}: {error}") from None


def _dim3(what: str, size: int | Iterable[int], most: Dim3) -> Dim3:
    lengths = (size,) if isinstance(size, int) else tuple(size)
    if not 1 <= len(lengths) <= 3 or not all(isinstance(n, int) for n in lengths):
        raise PlanError(f"{what} {_brief(size)}: give one to three whole numbers")
    full: Dim3 = (lengths[0], *(lengths[1:2] or (1,)), *(lengths[2:3] or (1,)))  # type: ignore[assignment]
    if any(not 1 <= n <= limit for n, limit in zip(full, most, strict=True)):
        raise PlanError(f"{what} {full}: each size is at least 1 and at most {most}")
    return full


def _call(text: str, recorder: Recorder, axes: Axes) -> Any:
    """Result of the plan's `launch`, every failure as a PlanError with a line."""
    code = compiled(text)
    watch = Watch()
    before = sys.gettrace()
    try:
        sys.settrace(watch)
        exec(code, seen := scope())
        launch = seen.get("launch")
        if not callable(launch):
            raise PlanError("no function launch(run, inputs, axes)")
        return launch(Run(recorder), recorder.inputs, dict(axes))
    except (PlanError, Stopped) as error:
        _fail(error, str(error))
    except KeyError as error:
        _fail(error, f"no input, axis or key {error}: inputs {list(recorder.inputs)}, axes {list(axes)}")
    except BadInputError:
        raise
    except Exception as error:
        _fail(error, f"{type(error).__name__}: {str(error)[:200]}")
    finally:
        sys.settrace(before)


def _fail(error: BaseException, why: str) -> NoReturn:
    line, trace_back = None, error.__traceback__
    while trace_back is not None:
        if trace_back.tb_frame.f_code.co_filename == FILE:
            line = trace_back.tb_lineno
        trace_back = trace_back.tb_next
    place = f"line {line}: " if line else ""
    raise PlanError(f"launch plan, {place}{' '.join(why.split())}") from None


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
