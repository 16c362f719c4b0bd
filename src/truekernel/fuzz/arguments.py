"""Arguments of one call, leaf by leaf: redrawn within what was learned, mutated from a sample, or by types alone."""

from __future__ import annotations

import math
import random as randomness
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Protocol

from truekernel.fuzz.choices import MOST_ARGUMENTS, MOST_AXES, RISKS, VOCABULARY, Kind, Node, Options
from truekernel.fuzz.forms import Form, bounded, resized, with_leaves
from truekernel.fuzz.records import Call, Leaf, Named, Operator, ParameterSpec, TensorValue, Value
from truekernel.fuzz.validity import Validity

MOST_ELEMENTS = 1 << 14
"""Of one tensor, unless one extent alone is larger."""
UNCHANGED = 0.55
"""Share of leaves that stay as a sample has them, for a policy without an opinion."""
ORDINARY_EXTENTS = {"2", "3", "4", "5", "7", "8", "9", "16", "17", "31", "32", "33"}
Choices = list[tuple[str, str, str]]
Steps = Generator[tuple[Node, Options], int, Call]

_INDEX: dict[str, dict[str, int]] = {
    kind: {option: place for place, option in enumerate(options)} for kind, options in VOCABULARY.items()
}
FLOATS = frozenset({"float32", "float64", "float16", "bfloat16", "complex64", "complex128"})


class Favours(Protocol):
    """Which options past bugs speak for."""

    def options(self, kind: Kind, operator: str) -> Mapping[str, float]:
        """How often to choose options of a kind of node, relative to 1."""
        ...


class _Budget:
    """How many choices may still leave what was learned to be valid; what was chosen."""

    def __init__(self, form: Form, validity: Validity, risk: str, experience: Favours | None) -> None:
        self.operator, self.experience = form.operator, experience
        self.left = len(VOCABULARY["argument"]) * 4 if risk == "all" else int(risk)
        self.validity = validity
        self.caution = validity.caution(form.operator)
        self.threshold = 0.75 + 0.24 * self.caution
        self.choices: Choices = []

    def options(
        self, key: str, kind: Kind, names: list[str], weights: list[float] | None = None
    ) -> tuple[Options, list[float]]:
        """What is open: what samples have, what is likely accepted, and with a budget all else."""
        estimates = [self.validity.estimate(key, kind, name) for name in names]
        likely = [place for place, estimate in enumerate(estimates) if self.left or estimate >= self.threshold]
        unchanged = min(UNCHANGED + 0.4 * self.caution, 0.97)
        favours = self.experience.options(kind, self.operator) if self.experience else {}
        shares = [(weights[place] if weights else 1.0) * favours.get(names[place], 1.0) for place in likely]
        total = sum(shares) or 1.0
        same = "same" if kind != "layout" else "contiguous"
        places = [_INDEX[kind][same], *(_INDEX[kind][names[place]] for place in likely)]
        parts = [unchanged, *((1.0 - unchanged) * share / total for share in shares)]
        order = sorted(range(len(places)), key=places.__getitem__)
        return Options(tuple(places[place] for place in order), tuple(parts[place] for place in order)), estimates

    def chose(self, key: str, kind: Kind, name: str) -> None:
        if self.validity.estimate(key, kind, name) < self.threshold:
            self.left = max(self.left - 1, 0)
        self.choices.append((key, kind, name))


def constrained(
    sample: Call,
    form: Form,
    number: int,
    random: randomness.Random,
    validity: Validity,
    experience: Favours | None = None,
) -> Generator[tuple[Node, Options], int, tuple[Call, Choices]]:
    """A sample with sizes, dtype, layouts, values and scalars drawn anew, together where the form's samples have them together."""
    caution = validity.caution(form.operator)
    bold = 1.0 - caution
    risk = RISKS[
        (
            yield (
                Node("risk", number, learned=form.operator),
                Options((0, 1, 2, 3), (0.8, 0.05 + 0.25 * bold, 0.01 + 0.08 * bold, 0.001 + 0.02 * bold)),
            )
        )
    ]
    budget = _Budget(form, validity, risk, experience)
    leaves = sample.leaves()
    root = f"{form.operator}#{form.number}"
    dtype = yield from _dtype(leaves, number, root, budget)
    if dtype is not None:
        _retyped(leaves, dtype)
    before = list(leaves)
    for place, positions in enumerate(form.symbols):
        slot, axis = positions[0]
        key = f"{root}:s{place}"
        names = [name for name in VOCABULARY["extent"] if name != "same" and _fits(leaves, positions, int(name))]
        options, _ = budget.options(key, "extent", names, [3.0 if name in ORDINARY_EXTENTS else 1.0 for name in names])
        name = VOCABULARY["extent"][(yield Node("extent", number, slot, axis, learned=key), options)]
        if name != "same":
            resized(leaves, positions, int(name))
            budget.chose(key, "extent", name)
    bounded(before, leaves)
    linked = {slot for positions in form.symbols for slot, axis in positions if axis < 0}
    for slot, leaf in enumerate(leaves):
        if slot in linked:
            continue
        leaves[slot] = yield from _leaf(leaf, number, slot, f"{root}:{slot}", budget, random)
    call = with_leaves(sample, leaves)
    if call.keywords:
        call = yield from _without(call, number, root, budget)
    return call, budget.choices


def _dtype(
    leaves: list[Leaf], number: int, root: str, budget: _Budget
) -> Generator[tuple[Node, Options], int, str | None]:
    first = next((leaf for leaf in leaves if isinstance(leaf, TensorValue)), None)
    if first is None:
        return None
    names = [name for name in VOCABULARY["dtype"] if name not in ("same", first.dtype)]
    key = f"{root.split('#', maxsplit=1)[0]}:dtype:{first.dtype}"
    options, _ = budget.options(key, "dtype", names)
    name = VOCABULARY["dtype"][(yield Node("dtype", number, learned=key), options)]
    if name == "same":
        return None
    budget.chose(key, "dtype", name)
    return name


def _retyped(leaves: list[Leaf], dtype: str) -> None:
    """Give all tensors that have the first one's dtype another."""
    first = next(leaf.dtype for leaf in leaves if isinstance(leaf, TensorValue))
    for slot, leaf in enumerate(leaves):
        if isinstance(leaf, TensorValue) and leaf.dtype == first:
            literal = leaf.data if (first in FLOATS) == (dtype in FLOATS) else None
            leaves[slot] = replace(leaf, dtype=dtype, data=literal)


def _fits(leaves: list[Leaf], positions: tuple[tuple[int, int], ...], size: int) -> bool:
    """Whether tensors stay small: at most 2**14 elements, or one long dimension of at most 70,000 beside little else."""
    if size == 0:
        return True
    axes: dict[int, list[int]] = {}
    for slot, axis in positions:
        if axis >= 0:
            axes.setdefault(slot, []).append(axis)
    for slot, changed in axes.items():
        leaf = leaves[slot]
        assert isinstance(leaf, TensorValue)
        rest = math.prod(extent for axis, extent in enumerate(leaf.shape) if axis not in changed)
        count = rest * size ** len(changed)
        if count > MOST_ELEMENTS and not (count <= 70000 and rest == 1 and len(changed) == 1):
            return False
    return size <= 70000 or not axes


def _leaf(
    leaf: Leaf, number: int, slot: int, key: str, budget: _Budget, random: randomness.Random
) -> Generator[tuple[Node, Options], int, Leaf]:
    if isinstance(leaf, TensorValue):
        options, _ = budget.options(key, "layout", [name for name in VOCABULARY["layout"] if name != "contiguous"])
        layout = VOCABULARY["layout"][(yield Node("layout", number, slot, learned=key), options)]
        if layout != "contiguous":
            budget.chose(key, "layout", layout)
        options, _ = budget.options(key, "values", [name for name in VOCABULARY["values"] if name != "same"])
        values = VOCABULARY["values"][(yield Node("values", number, slot, learned=key), options)]
        if values != "same":
            budget.chose(key, "values", values)
            leaf = replace(leaf, values=values, data=None)
        return replace(leaf, layout=layout, seed=random.getrandbits(31))
    kind = _scalar_kind(leaf)
    if kind is None:
        return leaf
    names = [name for name in VOCABULARY[kind] if name != "same" and (kind != "text" or False)]
    options, _ = budget.options(key, kind, names)
    name = VOCABULARY[kind][(yield Node(kind, number, slot, learned=key), options)]
    if name == "same":
        return leaf
    budget.chose(key, kind, name)
    return scalar(kind, name)


def _scalar_kind(leaf: Leaf) -> Kind | None:
    if isinstance(leaf, bool):
        return "boolean"
    if isinstance(leaf, int):
        return "integer"
    return "real" if isinstance(leaf, float) else None


def scalar(kind: str, name: str) -> bool | int | float:
    """The scalar that an option names."""
    if kind == "boolean":
        return name == "true"
    return int(name) if kind == "integer" else float(name)


def _without(call: Call, number: int, root: str, budget: _Budget) -> Generator[tuple[Node, Options], int, Call]:
    """The call without one of its keywords, perhaps."""
    kept = []
    for name, value in call.keywords:
        key = f"{root}:{name}"
        options, _ = budget.options(key, "present", ["absent"])
        chosen = VOCABULARY["present"][(yield Node("present", number, learned=key), options)]
        if chosen == "absent":
            budget.chose(key, "present", "absent")
        else:
            kept.append((name, value))
    return replace(call, keywords=tuple(kept))


def _all(kind: Kind, *, skip: tuple[str, ...] = ("same",), first: float = 1.0) -> Options:
    places = [place for place, name in enumerate(VOCABULARY[kind]) if name not in skip]
    return Options(tuple(places), (first, *(1.0 for _ in places[1:])))


def mutated(sample: Call, form: Form, number: int, random: randomness.Random) -> Steps:
    """A sample with up to four leaves changed, whatever was learned."""
    leaves = [
        replace(leaf, seed=random.getrandbits(31)) if isinstance(leaf, TensorValue) else leaf
        for leaf in sample.leaves()
    ]
    for _ in range(4):
        tensors = [slot for slot, leaf in enumerate(leaves) if isinstance(leaf, TensorValue)]
        scalars = [slot for slot, leaf in enumerate(leaves) if _scalar_kind(leaf)]
        names = [
            "none",
            *(["extent", "rank", "dtype", "layout", "values"] if tensors else []),
            *(["scalar"] if scalars else []),
            *(["alias"] if len(tensors) > 1 else []),
        ]
        kind = VOCABULARY["mutation"][
            (
                yield (
                    Node("mutation", number),
                    Options(tuple(_INDEX["mutation"][name] for name in names), (2.0, *(1.0 for _ in names[1:]))),
                )
            )
        ]
        if kind == "none":
            break
        slots = scalars if kind == "scalar" else tensors
        slot = yield (
            Node("argument", number),
            Options(tuple(slots[:MOST_ARGUMENTS]), tuple(1.0 for _ in slots[:MOST_ARGUMENTS])),
        )
        yield from _mutate(kind, leaves, slot, form, number, random)
    return with_leaves(sample, leaves)


def _mutate(
    kind: str, leaves: list[Leaf], slot: int, form: Form, number: int, random: randomness.Random
) -> Generator[tuple[Node, Options], int, None]:
    leaf = leaves[slot]
    if kind == "scalar":
        what = _scalar_kind(leaf)
        assert what is not None
        name = VOCABULARY[what][(yield Node(what, number, slot), _all(what))]
        leaves[slot] = scalar(what, name)
        return
    assert isinstance(leaf, TensorValue)
    if kind == "extent":
        if not leaf.shape:
            return
        count = min(len(leaf.shape), MOST_AXES)
        axis = yield Node("axis", number, slot), Options(tuple(range(count)), (1.0,) * count)
        open_places = [
            place
            for place, name in enumerate(VOCABULARY["extent"])
            if name != "same" and _fits(leaves, ((slot, axis),), int(name))
        ]
        name = VOCABULARY["extent"][
            (yield Node("extent", number, slot, axis), Options(tuple(open_places), (1.0,) * len(open_places)))
        ]
        positions = next((one for one in form.symbols if (slot, axis) in one), ((slot, axis),))
        together = random.random() < 0.5 and _fits(leaves, positions, int(name))
        resized(leaves, positions if together else ((slot, axis),), int(name))
    elif kind == "rank":
        rank = yield Node("rank", number, slot), _all("rank", skip=())
        shape = leaf.shape[-rank:] if rank else ()
        leaves[slot] = replace(leaf, shape=(1,) * (rank - len(shape)) + shape)
    elif kind == "dtype":
        name = VOCABULARY["dtype"][(yield Node("dtype", number, slot), _all("dtype"))]
        leaves[slot] = replace(leaf, dtype=name, data=None)
    elif kind == "layout":
        name = VOCABULARY["layout"][(yield Node("layout", number, slot), _all("layout", skip=()))]
        leaves[slot] = replace(leaf, layout=name)
    elif kind == "values":
        name = VOCABULARY["values"][(yield Node("values", number, slot), _all("values"))]
        leaves[slot] = replace(leaf, values=name, data=None)
    else:
        other = next((one for place, one in enumerate(leaves) if place != slot and isinstance(one, TensorValue)), leaf)
        leaves[slot] = other


def free(operator: Operator, number: int, sample: Call | None, random: randomness.Random) -> Steps:
    """Arguments by the types of parameters alone; where an operator states none, by those of a sample."""
    arguments: list[Value] = []
    keywords: list[tuple[str, Value]] = []
    if not operator.parameters and sample is not None:
        leaves = []
        for slot, leaf in enumerate(sample.leaves()):
            kind = "tensor" if isinstance(leaf, TensorValue) else _scalar_kind(leaf)
            leaves.append(leaf if kind is None else (yield from _typed(kind, number, slot, random)))
        return with_leaves(sample, leaves)
    stop = False
    for slot, parameter in enumerate(operator.parameters[:MOST_ARGUMENTS]):
        if parameter.optional:
            absent = parameter.kind == "other" or bool(
                (yield Node("present", number, slot), Options((0, 1), (0.4, 0.6)))
            )
            if absent:
                stop = stop or not parameter.keyword
                continue
        if stop and not parameter.keyword:
            continue
        value = yield from _parameter(parameter, number, slot, random)
        if parameter.keyword:
            keywords.append((parameter.name, value))
        else:
            arguments.append(value)
    return Call(operator.name, tuple(arguments), tuple(keywords))


def _parameter(
    parameter: ParameterSpec, number: int, slot: int, random: randomness.Random
) -> Generator[tuple[Node, Options], int, Value]:
    if parameter.kind in ("tensors", "integers"):
        count = yield Node("rank", number, slot), Options((1, 2, 3, 4), (1.0,) * 4)
        parts = []
        for _ in range(count):
            parts.append(
                (yield from _typed("tensor" if parameter.kind == "tensors" else "integer", number, slot, random))
            )
        return tuple(parts)
    return (yield from _typed(parameter.kind, number, slot, random))


def _typed(kind: str, number: int, slot: int, random: randomness.Random) -> Generator[tuple[Node, Options], int, Leaf]:
    if kind == "tensor":
        rank = yield Node("rank", number, slot), _all("rank", skip=())
        shape: tuple[int, ...] = ()
        for axis in range(rank):
            places = tuple(
                place
                for place, name in enumerate(VOCABULARY["extent"])
                if name != "same" and math.prod(shape) * int(name) <= MOST_ELEMENTS
            )
            chosen = yield Node("extent", number, slot, axis), Options(places, (1.0,) * len(places))
            shape = (*shape, int(VOCABULARY["extent"][chosen]))
        dtype = VOCABULARY["dtype"][(yield Node("dtype", number, slot), _all("dtype"))]
        layout = VOCABULARY["layout"][(yield Node("layout", number, slot), _all("layout", skip=()))]
        values = VOCABULARY["values"][(yield Node("values", number, slot), _all("values"))]
        return TensorValue(shape, dtype, layout, values, random.getrandbits(31), bound=4)
    if kind in ("integer", "real", "boolean"):
        what: Kind = kind  # type: ignore[assignment]
        return scalar(kind, VOCABULARY[what][(yield Node(what, number, slot), _all(what))])
    if kind == "dtype":
        return Named("dtype", VOCABULARY["dtype"][(yield Node("dtype", number, slot), _all("dtype"))])
    if kind == "text":
        return random.choice(
            ("mean", "sum", "none", "reflect", "constant", "linear", "floor", "trunc", "ij", "same", "")
        )
    return None
