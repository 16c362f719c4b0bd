"""Preconditions that torch documents and does not check: a call that breaks one has no result to speak of, only memory to keep to.

Each rule is asked where an operator has the parameters that it is about, whatever the operator's name. What a rule can't see (results of earlier calls) it takes for lawful.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from itertools import zip_longest
from typing import Any

import torch

from truekernel.fuzz.libraries.torch_operators import base_name, resolve
from truekernel.fuzz.libraries.torch_values import make
from truekernel.fuzz.records import Call, Operator, TensorValue, Value

Given = Mapping[str, Value]

ENUMERATIONS = {
    "interpolation_mode": 3,
    "padding_mode": 3,
    "reduction": 3,
    "normalization": 3,
    "mode": 3,
    "compute_mode": 3,
    "mask_type": 3,
}
"""How many values an enumeration has that is handed over as a whole number, by name of the parameter: `GridSamplerInterpolation`, `GridSamplerPadding`, `at::Reduction`, `fft_norm_mode`, modes of embedding
bags (padding has one more), of `cdist` and of masked softmax."""
GATES = {"lstm": 4, "gru": 3, "rnn": 1}
"""Rows of a recurrent weight, in hidden sizes."""


def violation(call: Call, operator: Operator) -> str:
    """Which documented precondition a call breaks; "" where none is known to be broken."""
    rules = _rules(operator)
    return _first(call, operator, rules) if rules else ""


@lru_cache(maxsize=256)
def _first(call: Call, operator: Operator, rules: tuple[Callable[[Given, str], str], ...]) -> str:
    given = dict(named(call, operator))
    for rule in rules:
        try:
            broken = rule(given, base_name(operator.name))
        except (
            ValueError,
            TypeError,
            IndexError,
            KeyError,
            RuntimeError,
        ):  # arguments of other types than the rule reads
            continue
        if broken:
            return broken
    return ""


def named(call: Call, operator: Operator) -> list[tuple[str, Value]]:
    """(name of the parameter, argument) in order; "" for one that no parameter is known for."""
    names = _names(operator)
    if {"hx", "params"} <= set(names) and len(call.arguments) > 3 and isinstance(call.arguments[3], tuple):
        names = ("data", "batch_sizes", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
    return [*zip_longest(names[: len(call.arguments)], call.arguments, fillvalue=""), *call.keywords]


@cache
def _names(operator: Operator) -> tuple[str, ...]:
    """Names of positional parameters. A Python function's own go before those of the schema that shares its name."""
    if operator.name.startswith("torch.nn.functional."):
        try:
            return tuple(inspect.signature(resolve(operator.name)).parameters)
        except (ValueError, TypeError):
            pass
    return tuple(parameter.name for parameter in operator.parameters if not parameter.keyword)


@cache
def _rules(operator: Operator) -> tuple[Callable[[Given, str], str], ...]:
    names = set(_names(operator)) | {parameter.name for parameter in operator.parameters}
    return tuple(rule for needs, rule in RULES if names & needs)


def _tensor(given: Given, *names: str) -> torch.Tensor | None:
    """The first of these arguments that is a tensor, made."""
    value = next((given[name] for name in names if isinstance(given.get(name), TensorValue)), None)
    return make(value).detach() if isinstance(value, TensorValue) else None


def _shape(value: Value) -> tuple[int, ...]:
    if not isinstance(value, TensorValue):
        raise TypeError
    return value.shape


def _enumerations(given: Given, base: str) -> str:  # noqa: ARG001
    for name, count in ENUMERATIONS.items():
        value, most = given.get(name), count + (name == "mode" and "pad" in given)
        if isinstance(value, int) and not isinstance(value, bool) and not 0 <= value < most:
            return f"{name} {value} names nothing"
    return ""


def _bags(given: Given, base: str) -> str:  # noqa: ARG001
    offsets, indices = _tensor(given, "offsets"), given.get("indices", given.get("input"))
    if offsets is None or not isinstance(indices, TensorValue):
        return ""
    if offsets.dim() != 1 or len(_shape(indices)) != 1:
        return "offsets where indices are no list"
    if not offsets.numel():
        return ""
    if int(offsets[0]) != 0:
        return "offsets do not begin at 0"
    if bool((offsets.diff() < 0).any()):
        return "offsets decrease"
    return "offsets end beyond the indices" if int(offsets[-1]) > _shape(indices)[0] else ""


def _sorted(given: Given, base: str) -> str:  # noqa: ARG001
    named = [given.get(name) for name in ("sorted_sequence", "boundaries", "bins")]
    values = [part for value in named for part in (value if isinstance(value, tuple) else (value,))]
    sorter = _tensor(given, "sorter")
    for value in values:
        if not isinstance(value, TensorValue) or not value.shape:
            continue
        tensor = make(value).detach()
        if sorter is not None:
            places = torch.arange(tensor.shape[-1]).expand(sorter.shape)
            if not torch.equal(sorter.sort(-1).values.long(), places):
                return "sorter is no permutation"
            tensor = tensor.gather(-1, sorter)
        if tensor.shape[-1] > 1 and not bool((tensor[..., 1:] >= tensor[..., :-1]).all()):
            return "a sequence that must be sorted is not"
        if bool(tensor.isnan().any()):
            return "a sorted sequence holds NaN"
    return ""


def _lengths(given: Given, base: str) -> str:  # noqa: ARG001
    shape, targets = _shape(given["log_probs"]), _tensor(given, "targets")
    blank = given.get("blank", 0)
    if targets is None or not isinstance(blank, int):
        return ""
    both = []
    for name in ("input_lengths", "target_lengths"):
        value = given[name]
        both.append(make(value).reshape(-1).tolist() if isinstance(value, TensorValue) else list(value))  # type: ignore[arg-type]
    inputs, wanted = both
    batch = shape[1] if len(shape) == 3 else 1
    if len(inputs) != batch or len(wanted) != batch:
        return "lengths are not one for each member of the batch"
    if any(not 0 <= length <= shape[0] for length in inputs):
        return "an input length is no length of the input"
    most = targets.shape[-1] if targets.dim() == 2 or batch == 1 else targets.numel()
    if any(not 0 <= length <= most for length in wanted) or (targets.dim() == 1 and sum(wanted) > targets.numel()):
        return "target lengths are beyond the targets"
    if bool(((targets < 0) | (targets >= shape[-1]) | (targets == blank)).any()):
        return "a target is no class, or the blank"
    return ""


def _groups(given: Given, base: str) -> str:  # noqa: ARG001
    count, channels, rest = (given[name] for name in ("N", "C", "HxW"))
    shape = _shape(given["input"])
    size = 1
    for extent in shape:
        size *= extent
    if not all(isinstance(part, int) for part in (count, channels, rest)) or count * channels * rest != size:  # type: ignore[operator]
        return "N, C and HxW are not the sizes of the input"
    return _channels(given, int(channels))  # type: ignore[arg-type]


def _statistics(given: Given, base: str) -> str:  # noqa: ARG001
    shape = _shape(given["input"])
    if given.get("training", given.get("use_input_stats")) is False and (
        given.get("running_mean") is None or given.get("running_var") is None
    ):
        return "no statistics to go by"
    return _channels(given, shape[1]) if len(shape) > 1 else ""


def _channels(given: Given, channels: int) -> str:
    for name in ("weight", "bias", "running_mean", "running_var"):
        value = given.get(name)
        if isinstance(value, TensorValue) and value.shape != (channels,):
            return f"{name} is not one number for each channel"
    return ""


def _recurrent(given: Given, base: str) -> str:
    gates = next((count for word, count in GATES.items() if word in base), 0)
    hx = given["hx"]
    states = hx if isinstance(hx, tuple) else (hx,)
    if "params" not in given:
        return _cell(given, states, gates)
    params, layers, biases = given["params"], given["num_layers"], given["has_biases"]
    packed = "data" in given
    shape = _shape(given["data" if packed else "input"])
    if not isinstance(params, tuple) or not isinstance(layers, int) or not gates or len(shape) != (2 if packed else 3):
        return "an input of other dimensions than length, batch and features"
    ways = 2 if given.get("bidirectional") else 1
    shapes = [_shape(state) for state in states]
    if any(len(one) != 3 or one[0] != layers * ways for one in shapes) or len({one[1] for one in shapes}) > 1:
        return "a state of other shape than layers, batch and hidden size"
    if not packed and shapes[0][1] != shape[0 if given.get("batch_first") else 1]:
        return "a state for another batch"
    out, hidden = shapes[0][2], shapes[-1][2]
    wanted: list[tuple[int, ...]] = []
    for layer in range(layers):
        for _ in range(ways):
            wanted += [(gates * hidden, shape[-1] if layer == 0 else out * ways), (gates * hidden, out)]
            wanted += [(gates * hidden,)] * 2 if biases else []
            wanted += [(out, hidden)] if out != hidden else []
    return "" if [_shape(one) for one in params] == wanted else "weights of other shapes than the layers have"


def _cell(given: Given, states: tuple[Any, ...], gates: int) -> str:
    shape, shapes = _shape(given["input"]), [_shape(state) for state in states]
    hidden = shapes[0][-1]
    if any(one != (*shape[:-1], hidden) for one in shapes):
        return "a state of other shape than batch and hidden size"
    wanted = {"w_ih": (gates * hidden, shape[-1]), "w_hh": (gates * hidden, hidden)}
    wanted |= {"b_ih": (gates * hidden,), "b_hh": (gates * hidden,)}  # type: ignore[dict-item]
    for name, expected in wanted.items():
        value = given.get(name)
        if isinstance(value, TensorValue) and value.shape != expected:
            return f"{name} of another shape than the cell has"
    return ""


def _unique(given: Given, base: str) -> str:  # noqa: ARG001
    if given.get("assume_unique") is not True:
        return ""
    for value in given.values():
        if isinstance(value, TensorValue) and make(value).unique().numel() < make(value).numel():
            return "elements that are said to be unique are not"
    return ""


def _places(given: Given, base: str) -> str:
    """Where several elements are written to one place, which of them stays is not promised (documentation of `scatter`, `index_copy`, `index_put`, `put_`, `max_unpool`)."""
    base = base.strip("_")
    if given.get("accumulate") or given.get("reduce") or base.startswith(("scatter_add", "scatter_reduce")):
        return ""
    repeated = "places that are written more than once"
    if base.startswith("index_put"):
        indices = [make(part) for part in given["indices"] if isinstance(part, TensorValue)]  # type: ignore[union-attr]
        if not indices or any(part.dtype in (torch.bool, torch.uint8) for part in indices):
            return ""
        rows = torch.stack([part.reshape(-1) for part in torch.broadcast_tensors(*indices)], dim=1)
        return repeated if rows.unique(dim=0).shape[0] < rows.shape[0] else ""
    index = _tensor(given, "index", "indices")
    if index is None or not index.numel():
        return ""
    if base.startswith("scatter") and isinstance(given.get("src", given.get("value")), TensorValue) and index.dim():
        ordered = index.sort(int(given["dim"])).values  # type: ignore[arg-type]
        return repeated if bool((ordered.diff(dim=int(given["dim"])) == 0).any()) else ""  # type: ignore[arg-type]
    if "unpool" in base:
        planes = index.flatten(-3 if "3d" in base else -1 if "1d" in base else -2).sort(-1).values
        return repeated if bool((planes.diff(dim=-1) == 0).any()) else ""
    if base.startswith(("index_copy", "put")) and index.unique().numel() < index.numel():
        return repeated
    return ""


def _pivots(given: Given, base: str) -> str:
    pivots = _tensor(given, "pivots", "LU_pivots")
    factors = next((given[name] for name in ("LU", "LU_data", "A") if isinstance(given.get(name), TensorValue)), None)
    if pivots is None or factors is None or "ldl" in base:
        return ""
    rows = _shape(factors)[-2]
    return "a pivot is no row" if bool(((pivots < 1) | (pivots > rows)).any()) else ""


def _hermitian(given: Given, base: str) -> str:  # noqa: ARG001
    matrices = _tensor(given, "self", "input", "A")
    if given.get("hermitian") is not True or matrices is None or matrices.shape[-1] != matrices.shape[-2]:
        return ""
    return "" if torch.equal(matrices, matrices.mH) else "matrices that are said to be Hermitian are not"


def _count(given: Given, base: str) -> str:  # noqa: ARG001
    tensor, numel = _tensor(given, "input", "self"), given["numel"]
    beyond = tensor is not None and isinstance(numel, int) and numel > tensor.numel()
    return "numel is more than the number of elements" if beyond else ""


RULES: tuple[tuple[frozenset[str], Callable[[Given, str], str]], ...] = (
    (frozenset(ENUMERATIONS), _enumerations),
    (frozenset({"offsets"}), _bags),
    (frozenset({"sorted_sequence", "boundaries", "bins"}), _sorted),
    (frozenset({"target_lengths"}), _lengths),
    (frozenset({"HxW"}), _groups),
    (frozenset({"running_mean"}), _statistics),
    (frozenset({"hx"}), _recurrent),
    (frozenset({"assume_unique"}), _unique),
    (frozenset({"index", "indices"}), _places),
    (frozenset({"pivots", "LU_pivots"}), _pivots),
    (frozenset({"hermitian"}), _hermitian),
    (frozenset({"numel"}), _count),
)
"""(parameters, one of which an operator must have, rule)."""
