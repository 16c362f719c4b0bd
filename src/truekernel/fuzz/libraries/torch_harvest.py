"""Watching torch's own samples run, and finding arguments for operators that nothing entered."""

from __future__ import annotations

import itertools
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from truekernel.fuzz.choices import MOST_FORMS
from truekernel.fuzz.guessing import guess, in_child
from truekernel.fuzz.libraries.torch_calls import NoDescriptionError, described, made, tensors_of
from truekernel.fuzz.libraries.torch_operators import base_name, operators, resolve
from truekernel.fuzz.libraries.torch_values import describe
from truekernel.fuzz.records import Call, Operator, TensorValue, Value

SAMPLES_A_FORM = 6
SAMPLES_AN_OPERATOR = 96
SAMPLES_A_DTYPE = 40
MOST_ELEMENTS = 1 << 15
GUESSES = 150


def form_key(call: Call) -> tuple[Any, ...]:
    """What calls of one form share: kinds of leaves, ranks, dtypes of tensors, texts, and where arguments are."""

    def shape_of(value: Value) -> Any:
        if isinstance(value, tuple):
            return tuple(shape_of(part) for part in value)
        if isinstance(value, TensorValue):
            return (len(value.shape), value.dtype)
        return value if isinstance(value, str | bool) or value is None else type(value).__name__

    return (
        tuple(shape_of(value) for value in call.arguments),
        tuple((name, shape_of(value)) for name, value in call.keywords),
    )


class _Notes:
    """Calls noted so far in this process, by operator."""

    def __init__(self, names: dict[int, list[str]]) -> None:
        self.names = names
        self.seen: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.calls: list[Call] = []
        self.busy = False

    def note(self, name: str, arguments: Any, keywords: Any) -> None:
        if self.busy or sum(self.seen[name].values()) >= SAMPLES_AN_OPERATOR:
            return
        self.busy = True
        try:
            call = described(name, arguments, dict(keywords or {}))
            if any(isinstance(leaf, TensorValue) and _elements(leaf) > MOST_ELEMENTS for leaf in call.leaves()):
                return
            key = form_key(call)
            if self.seen[name][key] < SAMPLES_A_FORM and (key in self.seen[name] or len(self.seen[name]) < MOST_FORMS):
                self.seen[name][key] += 1
                self.calls.append(call)
        except NoDescriptionError:
            pass
        finally:
            self.busy = False


def _elements(value: TensorValue) -> int:
    count = 1
    for size in value.shape:
        count *= size
    return count


class _Functions(TorchFunctionMode):
    def __init__(self, notes: _Notes) -> None:
        super().__init__()
        self.notes = notes

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not self.notes.busy:
            for name in self.notes.names.get(id(func), ()):
                self.notes.note(name, args, kwargs)
        return func(*args, **(kwargs or {}))


class _Overloads(TorchDispatchMode):
    def __init__(self, notes: _Notes) -> None:
        super().__init__()
        self.notes = notes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not self.notes.busy and func.namespace == "aten":
            self.notes.note(
                f"torch.ops.aten.{func._schema.name.removeprefix('aten::')}.{func._overloadname}", args, kwargs
            )
        return func(*args, **(kwargs or {}))


class Harvest:
    """Learns samples of all operators. Nothing is executed in this process but in forked children."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.operators = {operator.name: operator for operator in operators()}
        self.found: dict[str, list[Call]] = {}
        self._seen: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))

    def run(self) -> dict[str, list[Call]]:
        """All samples by operator name."""
        from torch.testing._internal.common_methods_invocations import op_db

        names: dict[int, list[str]] = defaultdict(list)
        for name in self.operators:
            if not name.startswith("torch.ops."):
                names[id(resolve(name))].append(name)
        for number, info in enumerate(op_db):
            if not number % 50:
                print(
                    f"{number} of {len(op_db)} sources of samples, {len(self.found)} operators",
                    file=sys.stderr,
                    flush=True,
                )
            self._keep(in_child(partial(_watched, info, names, self.operators), self.folder))
        for _ in range(2):
            self._borrow()
        for operator in self.operators.values():
            if operator.name not in self.found:
                self._keep(in_child(partial(_guessed, operator), self.folder, 8.0))
        self._borrow()
        return {name: self.found[name] for name in self.operators if name in self.found}

    def _keep(self, calls: list[Call]) -> None:
        for call in calls:
            kept = self.found.setdefault(call.operator, [])
            key = form_key(call)
            seen = self._seen[call.operator]
            if len(kept) < SAMPLES_AN_OPERATOR and seen[key] < SAMPLES_A_FORM and call not in kept:
                seen[key] += 1
                kept.append(call)

    def _borrow(self) -> None:
        """Samples for operators without any, from those of the same name in other namespaces."""
        groups: dict[str, list[str]] = defaultdict(list)
        for name in self.found:
            groups[_plain(name)].append(name)
        for operator in self.operators.values():
            lenders = groups.get(_plain(operator.name), ())
            if operator.name in self.found or not lenders:
                continue
            calls = list(itertools.chain.from_iterable(self.found[name][:24] for name in lenders))
            self._keep(in_child(partial(_borrowed, operator, calls), self.folder))


def _plain(name: str) -> str:
    """Base name without what marks in-place, and without the namespace's prefix."""
    base = base_name(name).rstrip("_")
    for prefix in ("linalg_", "fft_", "special_"):
        base = base.removeprefix(prefix)
    return base


def _watched(info: Any, names: dict[int, list[str]], known: dict[str, Operator]) -> Iterator[Call]:
    """Calls noted while the samples of an OpInfo run, those that run again from their description."""
    notes = _Notes(names)
    for dtype in _dtypes(info):
        gradient = dtype.is_floating_point and info.supports_autograd
        for number, sample in enumerate(
            itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=gradient), SAMPLES_A_DTYPE)
        ):
            targets = [info.op, *(alias.op for alias in info.aliases), info.method_variant, info.inplace_variant]
            for target in (target for target in targets if target is not None):
                given = sample.input
                if target is info.inplace_variant and isinstance(given, torch.Tensor):
                    given = given.detach().clone()
                for name in names.get(id(target), ()):
                    notes.note(name, (given, *sample.args), sample.kwargs)
                try:
                    with _Functions(notes), _Overloads(notes):
                        result = target(given, *sample.args, **sample.kwargs)
                        if gradient and number < 6 and target is info.op:
                            parts = [part for part in tensors_of(result) if part.requires_grad]
                            torch.autograd.backward([part.abs().sum() for part in parts])
                except Exception:  # a sample that this variant does not run is none of its samples
                    continue
        yield from (call for call in notes.calls if call.operator in known and runs(call))
        notes.calls.clear()


def _dtypes(info: Any) -> list[torch.dtype]:
    wanted = (torch.float32, torch.int64, torch.complex64, torch.bool, torch.float64, torch.bfloat16)
    supported = info.supported_dtypes("cpu")
    return [dtype for dtype in wanted if dtype in supported][:4]


def runs(call: Call) -> bool:
    """Whether a call, made from its description, is accepted and returns."""
    try:
        arguments, keywords, _ = made(call)
        resolve(call.operator)(*arguments, **keywords)
    except Exception:
        return False
    return True


def _borrowed(operator: Operator, calls: list[Call]) -> Iterator[Call]:
    """Calls of other operators that `operator` accepts too, with an output argument where it wants one."""
    out = [
        parameter.name
        for parameter in operator.parameters
        if parameter.name.startswith("out") and parameter.keyword and parameter.kind == "tensor"
    ]
    wants_out = operator.name.startswith("torch.ops.") and bool(out) and "out" in operator.schema.split("(")[0]
    for call in calls:
        for positional in (False, True):
            changed = _adapted(call, operator, positional)
            if changed is None:
                continue
            if wants_out:
                try:
                    arguments, keywords, _ = made(call)
                    results = [describe(part) for part in tensors_of(resolve(call.operator)(*arguments, **keywords))]
                except Exception:
                    continue
                if len(results) < len(out) or any(part is None for part in results):
                    continue
                outs = tuple(
                    (name, TensorValue(part.shape, part.dtype))
                    for name, part in zip(out, results, strict=False)
                    if part is not None
                )
                changed = Call(
                    changed.operator,
                    changed.arguments,
                    (*(pair for pair in changed.keywords if pair[0] not in out), *outs),
                )
            if runs(changed):
                yield changed
                break


def _adapted(call: Call, operator: Operator, by_position: bool) -> Call | None:
    """The call with `operator`; `by_position`: keywords become positional arguments where the schema says where."""
    keywords = tuple(pair for pair in call.keywords if not pair[0].startswith("out"))
    if not by_position:
        return Call(operator.name, call.arguments, keywords)
    order = [parameter.name for parameter in operator.parameters if not parameter.keyword]
    given = dict(keywords)
    arguments = list(call.arguments)
    while len(arguments) < len(order) and order[len(arguments)] in given:
        arguments.append(given.pop(order[len(arguments)]))
    return Call(operator.name, tuple(arguments), tuple(sorted(given.items()))) if len(given) < len(keywords) else None


def _guessed(operator: Operator) -> Iterator[Call]:
    """Random arguments that fit the schema and are accepted."""
    chance = random.Random(operator.name)
    if (
        not any(parameter.kind in ("tensor", "tensors") for parameter in operator.parameters)
        and not operator.parameters
    ):
        return
    kept = 0
    for _ in range(GUESSES):
        call = guess(operator, chance)
        if runs(call):
            yield call
            kept += 1
        if kept >= 12:
            return
