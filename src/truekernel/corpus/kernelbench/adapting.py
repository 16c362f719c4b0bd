"""From the description of a problem file to a `Problem`: axes with kinds, value recipes, a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from truekernel.corpus.kernelbench.checkout import ProblemFile
from truekernel.corpus.kernelbench.description import Constant, Description, Made, OutputFound, TensorFound
from truekernel.corpus.kernelbench.fitting import Seen, expression
from truekernel.corpus.kernelbench.module_text import NotAProblemError
from truekernel.corpus.kernelbench.reference import FileReference
from truekernel.model import ITEM_BYTES, Axes, AxisSpec, Domain, DType, OutputSpec, Problem, TensorSpec
from truekernel.model.lengths import lengths
from truekernel.model.problem import AxisKind

AUDIT_BATCH = 2
AUDIT_SPATIAL = 33
"""Audit lengths: long enough that neighbours exist and, along a spatial axis, that a warp does not cover it."""
ODD_BATCH = (1, 3)
TAKEN = {*ITEM_BYTES, "bool"}
Shape = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Adapted:
    """A problem file as a problem. `description`: what was found; `notes`: what differs from the file, one line each."""

    file: ProblemFile
    problem: Problem
    description: Description
    notes: tuple[str, ...] = ()


def adapt(file: ProblemFile, found: Description) -> Adapted:
    """The problem of a file. Raises NotAProblemError for tensors that a program can't receive or return."""
    for dtype in _everything(found, "dtype"):
        if dtype not in TAKEN:
            raise NotAProblemError(f"it has {dtype} tensors: known are {', '.join(sorted(TAKEN))}")
    axes, shapes = _axes(found)
    count_in, count_par = len(found.inputs), len(found.parameters)
    derived = tuple(tensor.name for tensor in (*found.inputs, *found.parameters) if _recipe(tensor.made) is None)
    inputs = tuple(_spec(t, shape, axes) for t, shape in zip(found.inputs, shapes[:count_in], strict=True))
    parameters = tuple(
        _spec(t, shape, axes)
        for t, shape in zip(found.parameters, shapes[count_in : count_in + count_par], strict=True)
    )
    outputs = tuple(
        _output(number, output, shape)
        for number, (output, shape) in enumerate(zip(found.outputs, shapes[count_in + count_par :], strict=True))
    )
    reference = FileReference(file.path, found, derived)
    problem = Problem(
        name=file.name,
        family=f"kernelbench level {file.level}",
        summary=found.summary or file.title.replace("_", " ").strip(),
        axes=axes,
        inputs=inputs,
        outputs=outputs,
        reference=reference,
        flops=_Flops(found.operations, {name: axis.official for name, axis in axes.items()}),
        bytes=_bytes((*inputs, *parameters), outputs),
        parameters=parameters,
        ties=reference.ties if any(spec.kind == "index" for spec in outputs) else None,
        make=reference.make if derived else None,
        source=f"KernelBench level {file.level} problem {file.number} ({file.title}), from a user's checkout",
    )
    notes = [f"'{name}' is made by the file's own code from drawn numbers" for name in derived]
    if found.writes_inputs:
        notes.append("its forward writes to its inputs: the reference gets copies")
    return Adapted(file, problem, found, tuple(notes))


def _everything(found: Description, field: str) -> list[Any]:
    """A field of all inputs, parameters and outputs, in this order."""
    return [getattr(part, field) for part in (*found.inputs, *found.parameters, *found.outputs)]


def _axes(found: Description) -> tuple[dict[str, AxisSpec], list[Shape]]:
    """Axes and the shapes over them. A constant whose dimensions have no expression is no axis: its lengths stay numbers."""
    official = _everything(found, "shape")
    given = len(found.inputs) + len(found.parameters)
    free = {constant.name: constant for constant in found.constants if _moves(constant, official, range(given))}
    while True:
        shapes, failed = _fitted(official, free)
        if not failed:
            break
        # Where two constants meet in one length (an image and a kernel, say), the weights' constant stays fixed first.
        inner = {name for name in failed if not _moves(free[name], official, range(len(found.inputs)))}
        for name in inner or failed:
            del free[name]
    specs = {name: _axis(constant, shapes, found) for name, constant in free.items()}
    return specs, shapes


def _moves(constant: Constant, official: Sequence[tuple[int, ...]], numbers: range) -> bool:
    """Whether any of these tensors was seen with another shape as the constant changed."""
    return any(seen.shapes[number] != official[number] for seen in constant.seen for number in numbers)


def _fitted(official: Sequence[tuple[int, ...]], free: Mapping[str, Constant]) -> tuple[list[Shape], set[str]]:
    shapes: list[Shape] = []
    failed: set[str] = set()
    for number, shape in enumerate(official):
        entries: list[str | int] = []
        for dim, length in enumerate(shape):
            movers = {name: seen for name, c in free.items() if (seen := _seen(c, number, dim, length)) is not None}
            entry = expression(length, movers)
            if entry is None:
                failed |= set(movers)
                entry = length
            entries.append(entry)
        shapes.append(tuple(entries))
    return shapes, failed


def _seen(constant: Constant, number: int, dim: int, official: int) -> Seen | None:
    """The lengths of one dimension that were seen as a constant changed; None when they did not follow it."""
    pairs = [(constant.value, official)]
    for seen in constant.seen:
        if dim >= len(seen.shapes[number]):
            continue
        pairs.append((seen.value, seen.shapes[number][dim]))
    return pairs if any(length != official for _, length in pairs) else None


def _axis(constant: Constant, shapes: Sequence[Shape], found: Description) -> AxisSpec:
    count_in, count_par = len(found.inputs), len(found.parameters)
    where = [_places(constant.name, shape) for shape in shapes]
    inputs, parameters, outputs = (
        where[:count_in],
        where[count_in : count_in + count_par],
        where[count_in + count_par :],
    )
    kind: AxisKind
    if any(parameters) and any(outputs):
        kind = "feature"
    elif not constant.independent or not all(outputs):
        kind = "reduction"
    elif any(places and places[0] == 0 for places in inputs):
        kind = "batch"
    else:
        kind = "spatial"
    audit = constant.value
    if kind == "batch":
        audit = min(audit, AUDIT_BATCH)
    elif kind == "spatial":
        audit = min(audit, AUDIT_SPATIAL)
    odd = tuple(n for n in ODD_BATCH if n != audit) if kind == "batch" else ()
    return AxisSpec(official=constant.value, audit=audit, kind=kind, odd=odd)


def _places(name: str, shape: Shape) -> list[int]:
    return [
        dim for dim, entry in enumerate(shape) if isinstance(entry, str) and name in entry.replace("(", " ").split()
    ]


def _spec(tensor: TensorFound, shape: Shape, axes: Mapping[str, AxisSpec]) -> TensorSpec:
    dtype = cast(DType, "uint8" if tensor.dtype == "bool" else tensor.dtype)
    made = tensor.made
    domain = Domain()
    if tensor.dtype == "bool":
        domain = Domain(kind="boolean")
    elif made.by == "integers" and not dtype.startswith(("float", "bfloat")):
        top = int(made.high)
        below = next((name for name, axis in axes.items() if axis.official == top), str(top))
        domain = Domain(kind="index", below=below) if made.low == 0 else Domain(low=made.low, high=made.high - 1)
    elif made.by == "other" and made.what in ("_softmax", "softmax", "sigmoid"):
        domain = Domain(0.0, 1.0)
    recipe, scale = _recipe(made) or ("uniform", "1")
    return TensorSpec(tensor.name, shape, dtype, domain, recipe, scale)


def _recipe(made: Made) -> tuple[str, str] | None:
    """Value recipe and scale that draw from the same distribution; None when no recipe does."""
    match made.by:
        case "uniform" if made.low == -made.high:
            return "signed", repr(made.high)
        case "uniform" if made.low == 0.0:
            return "uniform", "1" if made.high == 1.0 else repr(made.high)
        case "uniform":
            return f"uniform*{made.high - made.low!r}+{made.low!r}", "1"
        case "normal" if made.mean == 0.0:
            return "normal", "1" if made.deviation == 1.0 else repr(made.deviation)
        case "normal":
            return f"normal*{made.deviation!r}+{made.mean!r}", "1"
        case "constant":
            return ("zeros", "1") if made.value == 0 else ("ones", "1" if made.value == 1 else repr(made.value))
        case "integers":
            return "integers", "1"
    return None


def _output(number: int, output: OutputFound, shape: Shape) -> OutputSpec:
    dtype = cast(DType, "uint8" if output.dtype == "bool" else output.dtype)
    if output.chosen_by:
        return OutputSpec(f"output_{number}", shape, dtype, "index")
    return OutputSpec(f"output_{number}", shape, dtype, "value" if "float" in dtype else "exact")


@dataclass(frozen=True, slots=True)
class _Flops:
    """Operations at other lengths, in proportion to every axis: exact along batch and spatial axes, the only ones that shrink."""

    official: float
    axes: Mapping[str, int]

    def __call__(self, axes: Axes) -> float:
        ratio = 1.0
        for name, length in self.axes.items():
            ratio *= axes.get(name, length) / length
        return self.official * ratio


@dataclass(frozen=True, slots=True)
class _Bytes:
    tensors: tuple[tuple[Shape, str], ...]

    def __call__(self, axes: Axes) -> float:
        total = 0.0
        for shape, dtype in self.tensors:
            count = 1
            for length in lengths(shape, axes):
                count *= length
            total += count * ITEM_BYTES[dtype]
        return total


def _bytes(tensors: Sequence[TensorSpec], outputs: Sequence[OutputSpec]) -> _Bytes:
    return _Bytes((*((spec.shape, spec.dtype) for spec in tensors), *((spec.shape, spec.dtype) for spec in outputs)))
