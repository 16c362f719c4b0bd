"""The records of the fuzzing room: operators, test cases, outcomes, feedback, findings. Frozen, typed, no I/O.

A test case is data: it replays in any process and prints as a short script. `document` and `parsed` are its JSON form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

OutcomeKind = Literal["valid", "refused", "crash", "assert", "hang", "memory", "mismatch", "extreme"]
"""What a case came to. `refused`: an exception that tells the caller of a bad argument. `crash`: a signal ended the process. `assert`: an internal assertion
of the library. `memory`: a small input asked for a huge allocation. `mismatch`: an oracle found a wrong result. `extreme`: an oracle found
one that only NaN, infinities or values near the limits of the format bring about, which no honest order of operations must agree on: no failure."""

OUTCOME_KINDS: tuple[OutcomeKind, ...] = get_args(OutcomeKind)
FAILURES: frozenset[OutcomeKind] = frozenset({"crash", "assert", "hang", "memory", "mismatch"})

Severity = Literal["critical", "high", "medium", "low"]
"""critical: memory is read or written out of bounds, or a wrong result for an ordinary valid input. high: a crash of a public function.
medium: an internal assertion, a hang, a wrong result at an extreme. low: an internal operator that no user calls."""

ArgumentKind = Literal["tensor", "tensors", "integer", "integers", "real", "boolean", "text", "dtype", "other"]


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """One parameter of an operator. `kind` is `other` for what the generator can't make; such parameters keep their default."""

    name: str
    kind: ArgumentKind
    optional: bool = False
    keyword: bool = False
    """Given by name only."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One callable of a library.

    `name`: dotted path from the library's root module, e.g. `torch.nn.functional.conv2d` or `torch.ops.aten.conv2d.default`; unique, and what users select by.
    `schema`: its overload's schema as text, or "". `public`: users are meant to call it. `documented`: it has public documentation.
    `family`: coarse group (`convolution`, `linear algebra`, ...), the first choice of the tree.
    `features`: numbers in [0, 1], the same names in the same order for all operators of a library (`Library.feature_names`).
    `weight`: how often it is chosen relative to others of its family; set by the user and the knowledge base.
    """

    name: str
    family: str
    parameters: tuple[ParameterSpec, ...] = ()
    schema: str = ""
    public: bool = True
    documented: bool = True
    backward: bool = False
    """A raw backward operator, whose arguments a user never chooses; its findings are counted apart."""
    features: tuple[float, ...] = ()
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class TensorValue:
    """A tensor as data. `layout` and `values` name recipes (`choices.LAYOUTS`, `choices.VALUES`); `seed` draws the values.

    `bound`: for the recipe `index`, values are drawn from [-bound, bound) or [0, bound). `data`: literal values in row-major order, which replace the recipe;
    for small tensors only. `gradient`: the tensor requires a gradient.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    layout: str = "contiguous"
    values: str = "normal"
    seed: int = 0
    bound: int = 0
    data: tuple[float | int | bool | str, ...] | None = None
    gradient: bool = False


@dataclass(frozen=True, slots=True)
class Reference:
    """The result of an earlier call of the same case; `output`: which one, where it returned several."""

    call: int
    output: int = 0


@dataclass(frozen=True, slots=True)
class Shared:
    """The same tensor object as leaf number `leaf` (in the order of `Call.leaves`) of call `call`; -1: of this call, a leaf before this one."""

    call: int
    leaf: int


@dataclass(frozen=True, slots=True)
class Named:
    """An object of the library that JSON lacks: `kind` is `dtype`, `layout`, `memory_format`, `device` or `complex`."""

    kind: str
    name: str


Leaf = TensorValue | Reference | Shared | Named | int | float | bool | str | None
Value = Leaf | tuple[Any, ...]
"""An argument: a leaf, or a (nested) tuple of them, which is handed over as a list."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `repeat`: how often it is made in a row, the results of all but the last thrown away."""

    operator: str
    arguments: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    repeat: int = 1

    def leaves(self) -> list[Leaf]:
        """All leaves in order: positional arguments first, then keywords, nested lists from left to right."""
        found: list[Leaf] = []
        for value in (*self.arguments, *(value for _, value in self.keywords)):
            _gather(value, found)
        return found


def _gather(value: Value, found: list[Leaf]) -> None:
    if isinstance(value, tuple):
        for part in value:
            _gather(part, found)
    else:
        found.append(value)


MOST_CALLS = 6


@dataclass(frozen=True, slots=True)
class TestCase:
    """1 to 6 calls. `origin`: how it was made (`choices.ORIGINS` of the first call, or `pattern:NAME`), for statistics only."""

    __test__ = False  # not a pytest class
    library: str
    calls: tuple[Call, ...]
    origin: str = ""

    def key(self) -> str:
        """Content hash; cases that differ in origin alone have the same."""
        import hashlib
        import json

        text = json.dumps(document(self) | {"origin": ""}, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a case, or an oracle on it, came to.

    `oracle`: which one says so; `execution` for the plain run. `call`: number of the call that decided. `message`: the exception's or the oracle's text.
    `location`: what tells root causes apart: the exception's C++ file and line, or the innermost named frames of the native stack.
    """

    kind: OutcomeKind
    oracle: str = "execution"
    call: int = 0
    error: str = ""
    """Type of the exception, or name of the signal."""
    message: str = ""
    location: str = ""
    seconds: float = 0.0
    peak_bytes: int = 0
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether this is a failure of the library, if the input was valid."""
        return self.kind in FAILURES


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a policy learns from. The kinds of coverage are apart and are never added together; each lists what was seen for the first time in this run."""

    outcome: Outcome
    """The worst of all outcomes of the case: the plain run's, or an oracle's that failed."""
    functions: tuple[int, ...] = ()
    """Native functions, by their number in the coverage source's list."""
    overloads: tuple[str, ...] = ()
    """Dispatched operator overloads."""
    lines: tuple[str, ...] = ()
    """Python lines, "module:line"."""
    kernels: tuple[str, ...] = ()
    """Kernels on a GPU, by name."""
    finding: str = ""
    """Key of the finding that this case showed, or ""."""
    fresh: bool = False
    """Whether that finding is new in this run."""
    severity: Severity | None = None
    duplicate: bool = False
    """The same case was made before; it was not executed again."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Finding:
    """A failure after triage. `key`: oracle, operator's kernel and location; the same root cause gives the same key, on any machine."""

    key: str
    oracle: str
    operator: str
    kind: OutcomeKind
    severity: Severity
    title: str
    case: TestCase
    """The smallest case that shows it."""
    original: TestCase
    expected: str
    observed: str
    location: str = ""
    public: bool = True
    backward: bool = False
    valid_input: bool = True
    """Whether the documentation lets users give this input. False: the library should have refused it instead of failing."""
    reproduced: int = 0
    """Of 3 runs in fresh processes."""
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    """Time into the run at which it was first seen."""
    seen: int = 1


_CLASSES: dict[str, type[Any]] = {
    cls.__name__: cls for cls in (TensorValue, Reference, Shared, Named, Call, TestCase, Outcome, Feedback, Finding)
}


def document(value: Any) -> Any:
    """A record as a JSON document. Non-finite numbers become {"is": "float", "text": "nan"}; tuples become lists."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"is": "float", "text": repr(value)}
    if isinstance(value, tuple | list):
        return [document(part) for part in value]
    if isinstance(value, Mapping):
        return {key: document(part) for key, part in value.items()}
    if type(value).__name__ in _CLASSES and type(value) is _CLASSES[type(value).__name__]:
        return {"is": type(value).__name__} | {part.name: document(getattr(value, part.name)) for part in fields(value)}
    return value


def parsed(value: Any) -> Any:
    """The record that `document` wrote. Raises KeyError or TypeError for what is no such document."""
    if isinstance(value, list):
        return tuple(parsed(part) for part in value)
    if not isinstance(value, dict):
        return value
    if "is" not in value:
        return {key: parsed(part) for key, part in value.items()}
    if value["is"] == "float":
        return float(value["text"])
    return _CLASSES[value["is"]](**{key: parsed(part) for key, part in value.items() if key != "is"})
