"""What a problem file turned out to hold: the wire format between the process that runs it and ours."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class WireRecord(BaseModel):
    """Base of what crosses between the processes: frozen, and strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Made(WireRecord):
    """How the values of a tensor were made."""

    by: Literal["uniform", "normal", "integers", "constant", "other"]
    low: float = 0.0
    """Uniform and integers: least value."""
    high: float = 0.0
    """Uniform and integers: end of the range, not included."""
    mean: float = 0.0
    deviation: float = 0.0
    value: float = 0.0
    what: str = ""
    """Other: the operator that made them."""


class TensorFound(WireRecord):
    """A tensor at official sizes."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    made: Made
    contiguous: bool = True


class OutputFound(WireRecord):
    """An output at official sizes. `chosen_by`: argmax or argmin when it holds the places that this operator found."""

    shape: tuple[int, ...]
    dtype: str
    chosen_by: str = ""


class Shapes(WireRecord):
    """Lengths of all inputs, parameters and outputs, in this order, when one constant has another value."""

    value: int
    shapes: tuple[tuple[int, ...], ...]


class Constant(WireRecord):
    """A whole-number constant of the file. `independent`: outputs along it are computed one by one; None = not known."""

    name: str
    value: int
    seen: tuple[Shapes, ...] = ()
    independent: bool | None = None


class Initialiser(WireRecord):
    """One random draw or filling while the model was made, in order: what candidates repeat to get the same weights."""

    parameter: str
    """Name of the parameter that holds the values; empty where they were replaced later and only the generator has moved on."""
    shape: tuple[int, ...]
    made: Made


class Description(WireRecord):
    """A problem file that can be adapted."""

    summary: str
    inputs: tuple[TensorFound, ...]
    """Named after forward's parameters."""
    literals: dict[int, bool | int | float | str | None]
    """Inputs that are not tensors, by their place in the call."""
    parameters: tuple[TensorFound, ...]
    outputs: tuple[OutputFound, ...]
    constants: tuple[Constant, ...]
    writes_inputs: bool
    """Whether forward changes its inputs in place."""
    initialisers: tuple[Initialiser, ...] | None
    """None when candidates can't repeat them."""
    operations: float
    """Arithmetic operations of one call at official sizes."""


class Answer(WireRecord):
    """The answer for one file: a description, or why there is none."""

    path: str
    found: Description | None = None
    refused: str = ""
