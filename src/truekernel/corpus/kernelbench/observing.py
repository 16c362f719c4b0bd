"""Run a problem file without its data: what it makes, and how shapes follow its constants."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode

from truekernel.corpus.kernelbench.description import (
    Constant,
    Description,
    Initialiser,
    OutputFound,
    Shapes,
    TensorFound,
)
from truekernel.corpus.kernelbench.module_text import NotAProblemError, namespace, whole_constants
from truekernel.corpus.kernelbench.recording import Recorder, key

SMALL = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512)
"""Lengths tried, in this order, for every constant when values are really computed."""
MOST_OPERATORS = 12_000
"""Operators without data that looking for axes may cost; each takes from a tenth of a millisecond to one."""
MOST_ELEMENTS = 1 << 22
MOST_OPERATIONS = 1e9
REDRAWN = ("rand", "randn", "rand_like", "randn_like", "randint", "uniform_", "normal_")
"""Random operators whose numbers `reference` draws from another generator."""
LITERALS = (bool, int, float, str, type(None))


@dataclass
class Run:
    """One call of a model without data. `tensors`: inputs and parameters by name."""

    inputs: dict[str, torch.Tensor]
    literals: dict[int, Any]
    parameters: dict[str, torch.Tensor]
    outputs: list[torch.Tensor]
    making: Recorder
    building: Recorder
    calling: Recorder

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Lengths of inputs, parameters and outputs."""
        return tuple(
            tuple(tensor.shape) for tensor in (*self.inputs.values(), *self.parameters.values(), *self.outputs)
        )


class Budget:
    """How many more calls without data a file gets: counted in operators, not in time, so that every machine finds the same axes."""

    def __init__(self, first: Run) -> None:
        operators = sum(recorder.count for recorder in (first.making, first.building, first.calling))
        self.calls = MOST_OPERATORS // max(operators, 1)

    def spend(self) -> bool:
        """Take one call; False when none is left."""
        self.calls -= 1
        return self.calls >= 0


def describe(text: str, path: str) -> Description:
    """What the file holds.

    Raises NotAProblemError with one line for what can't be adapted, and whatever the file raises.
    """
    run = run_without_data(text, path, {})
    _refuse(run)
    budget = Budget(run)
    given = len(run.inputs) + len(run.parameters)
    constants = [_constant(text, path, name, value, run, budget) for name, value in whole_constants(text).items()]
    moved = [c for c in constants if any(seen.shapes[:given] != run.shapes[:given] for seen in c.seen)]
    wholes = _independent(text, path, moved, budget)
    return Description(
        summary=_summary(text, path),
        inputs=tuple(_tensor(name, tensor, run.making) for name, tensor in run.inputs.items()),
        literals=run.literals,
        parameters=tuple(_tensor(name, tensor, run.building) for name, tensor in run.parameters.items()),
        outputs=tuple(_output(tensor, run.calling) for tensor in run.outputs),
        constants=tuple(
            constant.model_copy(update={"independent": wholes.get(constant.name)}) for constant in constants
        ),
        writes_inputs=any(key(tensor) in run.calling.written for tensor in run.inputs.values()),
        initialisers=_initialisers(run),
        operations=run.calling.operations,
    )


def _constant(text: str, path: str, name: str, value: int, run: Run, budget: Budget) -> Constant:
    """A constant with the shapes that its file has at other values; one that moves none at the first values tried is let go."""
    seen: list[Shapes] = []
    for number, other in enumerate(_others(value)):
        if (number == 2 and len(seen) == 2 and all(one.shapes == run.shapes for one in seen)) or not budget.spend():
            break
        try:
            shapes = run_without_data(text, path, {name: other}).shapes
        except Exception:
            continue  # a length that the file has no use for
        if len(shapes) == len(run.shapes):
            seen.append(Shapes(value=other, shapes=shapes))
    return Constant(name=name, value=value, seen=tuple(seen))


def run_without_data(text: str, path: str, lengths: Mapping[str, int]) -> Run:
    """Make the model and its inputs and call it, all with tensors that have shapes and no data."""
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        try:
            names = namespace(text, path, lengths)
            with Recorder() as building:
                model = names["Model"](*names["get_init_inputs"]())
            with Recorder() as making:
                given = names["get_inputs"]()
            inputs, literals = named_inputs(model, given)
            with Recorder() as calling:
                outputs = as_outputs(model(*given))
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise NotAProblemError(f"it needs values, not shapes alone, to be made ({error})") from None
    return Run(inputs, literals, dict(model.named_parameters()), outputs, making, building, calling)


def named_inputs(model: Any, given: Any) -> tuple[dict[str, torch.Tensor], dict[int, Any]]:
    """The tensors among a call's arguments, under the names of forward's parameters, and the rest by place."""
    if not isinstance(given, tuple | list):
        raise NotAProblemError(f"get_inputs returns {_type(given)}, not a list")
    names = [name for name in inspect.signature(model.forward).parameters if name.isidentifier()]
    tensors: dict[str, torch.Tensor] = {}
    literals: dict[int, Any] = {}
    for place, value in enumerate(given):
        if isinstance(value, torch.Tensor):
            name = names[place] if place < len(names) and names[place] not in tensors else f"input_{place}"
            tensors[name] = value
        elif isinstance(value, LITERALS):
            literals[place] = value
        else:
            raise NotAProblemError(f"input {place} is a {_type(value)}: only tensors, numbers and strings are taken")
    if not tensors:
        raise NotAProblemError("get_inputs returns no tensor")
    return tensors, literals


def as_outputs(result: Any) -> list[torch.Tensor]:
    """What forward returned as a list of tensors."""
    parts = list(result) if isinstance(result, tuple | list) else [result]
    for part in parts:
        if not isinstance(part, torch.Tensor):
            raise NotAProblemError(f"forward returns a {_type(part)}: only tensors can be compared")
    if not parts:
        raise NotAProblemError("forward returns nothing")
    return parts


def _refuse(run: Run) -> None:
    drawn = [draw.operator for draw in run.calling.draws]
    if drawn:
        raise NotAProblemError(
            f"forward draws random numbers ({', '.join(dict.fromkeys(drawn))}): two calls have nothing to agree on"
        )

    for what, recorder, tensors in (
        ("get_inputs", run.making, run.inputs),
        ("Model", run.building, run.parameters),
    ):
        strange = [draw.operator for draw in recorder.draws if draw.operator not in REDRAWN]
        if strange and any(recorder.made(tensor).by == "other" for tensor in tensors.values()):
            raise NotAProblemError(
                f"{what} draws by {strange[0]}: its numbers can't be drawn again by another generator"
            )


def _others(value: int) -> list[int]:
    """Other lengths worth a look: neighbours, half and double, small ones."""
    others = (value + 1, 2 * value, value + 2, value + 3, value - 3, 3 * value, value // 2, 2, 3, 5, 8, 33)
    return [other for other in dict.fromkeys(others) if other > 0 and other != value]


def _independent(text: str, path: str, moved: Sequence[Constant], budget: Budget) -> dict[str, bool]:
    """For each constant that moves shapes whether outputs along it are computed one by one; empty when the file has no small sizes.

    Every constant is made as small as the file allows; then half of one length, with the first half of the inputs, must give the first half of the outputs,
    and with the last half the last half (a running sum keeps its beginning, not its end).
    """
    small: dict[str, int] = {constant.name: constant.value for constant in moved}
    for constant in moved:
        for length in SMALL:
            if length >= constant.value or not budget.spend():
                break
            try:
                shapes = run_without_data(text, path, {**small, constant.name: length}).shapes
            except Exception:
                continue
            if all(0 not in shape for shape in shapes):
                small[constant.name] = length
                break
    if not budget.spend():
        return {}
    try:
        cost = run_without_data(text, path, small)
    except Exception:
        return {}
    tensors = (*cost.inputs.values(), *cost.parameters.values(), *cost.outputs)
    if sum(tensor.numel() for tensor in tensors) > MOST_ELEMENTS or cost.calling.operations > MOST_OPERATIONS:
        return {}
    return {constant.name: _halves_agree(text, path, small, constant.name) for constant in moved}


def _halves_agree(text: str, path: str, small: Mapping[str, int], name: str) -> bool:
    half = {**small, name: small[name] // 2}
    try:
        whole, part = _real(text, path, small), _real(text, path, half)
        if [p.shape for p in whole.parameters()] != [p.shape for p in part.parameters()]:
            return False
        part.load_state_dict(whole.state_dict(), strict=False)
        inputs = _doubled(namespace(text, path, small)["get_inputs"]())
        wanted = _doubled(namespace(text, path, half)["get_inputs"]())
        with torch.no_grad():
            full = as_outputs(whole(*_copies(inputs)))
            for last in (False, True):
                cut = [
                    _cut(tensor, other.shape, last) if isinstance(tensor, torch.Tensor) else tensor
                    for tensor, other in zip(inputs, wanted, strict=True)
                ]
                halved = as_outputs(part(*cut))
                if not all(_agree(a, b, last) for a, b in zip(full, halved, strict=True)):
                    return False
    except Exception:
        return False
    return True


def _agree(whole: torch.Tensor, part: torch.Tensor, last: bool) -> bool:
    return whole.shape != part.shape and torch.allclose(
        _cut(whole, part.shape, last).double(), part.double(), rtol=1e-9, atol=1e-12, equal_nan=True
    )


def _real(text: str, path: str, lengths: Mapping[str, int]) -> Any:
    names = namespace(text, path, lengths)
    return names["Model"](*names["get_init_inputs"]()).double()


def _doubled(inputs: Sequence[Any]) -> list[Any]:
    return [x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs]


def _copies(inputs: Sequence[Any]) -> list[Any]:
    return [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]


def _cut(tensor: torch.Tensor, shape: torch.Size, last: bool) -> torch.Tensor:
    """The first or last part of a tensor along the one dimension in which `shape` is shorter."""
    shorter = [dim for dim, length in enumerate(shape) if length != tensor.shape[dim]]
    if len(shorter) > 1:
        raise NotAProblemError("an axis that is two dimensions of one tensor can't be cut")
    for dim in shorter:
        tensor = tensor.narrow(dim, tensor.shape[dim] - shape[dim] if last else 0, shape[dim])
    return tensor.clone()


def _tensor(name: str, tensor: torch.Tensor, recorder: Recorder) -> TensorFound:
    return TensorFound(
        name=name,
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
        made=recorder.made(tensor),
        contiguous=tensor.is_contiguous(),
    )


def _output(tensor: torch.Tensor, recorder: Recorder) -> OutputFound:
    name = recorder.last.get(key(tensor), ("", ()))[0]
    chosen = name if name in ("argmax", "argmin") else ""
    return OutputFound(shape=tuple(tensor.shape), dtype=str(tensor.dtype).removeprefix("torch."), chosen_by=chosen)


def _initialisers(run: Run) -> tuple[Initialiser, ...] | None:
    """Random draws of the model's making in order, with the parameter that each ended in, then the parameters that hold constants."""
    recorder = run.building
    holders = {recorder.origin(tensor): name for name, tensor in run.parameters.items()}
    made = {name: recorder.made(tensor) for name, tensor in run.parameters.items()}
    if any(how.by == "other" for how in made.values()) or any(d.made.by == "other" for d in recorder.draws):
        return None
    result = []
    for number, draw in enumerate(recorder.draws):
        name = holders.get(number, "")
        result.append(Initialiser(parameter=name, shape=draw.shape, made=made.get(name, draw.made)))
    drawn = {initialiser.parameter for initialiser in result}
    for name, tensor in run.parameters.items():
        if name not in drawn:
            result.append(Initialiser(parameter=name, shape=tuple(tensor.shape), made=made[name]))
    return tuple(result)


def _summary(text: str, path: str) -> str:
    """First line of the model's docstring."""
    import ast

    for node in ast.parse(text, path).body:
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            return (ast.get_docstring(node) or "").strip().partition("\n")[0]
    return ""


def _type(value: Any) -> str:
    return "Tensor" if isinstance(value, torch.Tensor) else type(value).__name__
