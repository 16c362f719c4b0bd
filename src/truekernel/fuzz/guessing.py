"""Looking for calls that a library accepts, in children that may crash."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path

from truekernel.fuzz.records import Call, Operator, ParameterSpec, TensorValue, Value, document, parsed

SECONDS_A_PART = 20.0
"""Of processor time, for what one child does."""


def in_child(work: Callable[[], Iterable[Call]], folder: Path, seconds: float = SECONDS_A_PART) -> list[Call]:
    """What `work` yields in a forked child, up to where it crashed or ran out of time."""
    path = folder / "part"
    child = os.fork()
    if not child:
        import signal

        signal.setitimer(
            signal.ITIMER_PROF, seconds
        )  # of the processor, not of the clock: a machine that is busy costs no samples
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            with path.open("w", encoding="utf-8") as file:
                for call in work():
                    file.write(json.dumps(document(call)) + "\n")
                    file.flush()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(parsed(json.loads(line)))
        except ValueError:
            break
    return found


def guess(operator: Operator, chance: random.Random) -> Call:
    """Random arguments that fit the types of an operator's parameters."""
    shape = tuple(chance.choice((1, 2, 3, 4, 4, 5, 8)) for _ in range(chance.choice((0, 1, 1, 2, 2, 3, 4, 4, 5))))
    same = chance.random() < 0.6
    dtype = chance.choice(("float32", "float32", "float32", "int64", "complex64", "bool"))
    arguments: list[Value] = []
    keywords: list[tuple[str, Value]] = []
    for parameter in operator.parameters:
        if parameter.optional and (chance.random() < 0.7 or parameter.kind == "other"):
            if not parameter.keyword and not keywords:
                break
            continue
        value = guessed_value(parameter, shape, dtype, chance, same)
        if parameter.keyword:
            keywords.append((parameter.name, value))
        else:
            arguments.append(value)
    return Call(operator.name, tuple(arguments), tuple(keywords))


def guessed_value(
    parameter: ParameterSpec, shape: tuple[int, ...], dtype: str, chance: random.Random, same: bool
) -> Value:
    """An argument for a parameter, by its kind and name."""

    def tensor() -> TensorValue:
        own = shape if same else tuple(chance.choice((1, 2, 3, 4)) for _ in range(chance.choice((0, 1, 2, 3, 4))))
        if any(word in parameter.name for word in ("index", "indices", "idx", "offset", "length", "target")):
            return TensorValue(own, "int64", values="index", bound=2, seed=chance.randrange(1000))
        if "mask" in parameter.name or "condition" in parameter.name:
            return TensorValue(own, "bool", seed=chance.randrange(1000))
        return TensorValue(own, dtype, seed=chance.randrange(1000))

    kind = parameter.kind
    if kind == "tensor":
        return tensor()
    if kind == "tensors":
        return tuple(tensor() for _ in range(chance.choice((1, 2, 3))))
    if kind == "integer":
        return chance.choice((0, 0, 1, 1, 2, 3, -1))
    if kind == "integers":
        return chance.choice(
            (shape, tuple(chance.choice((0, 1, 1, 2, 3)) for _ in range(chance.choice((1, 2, 2, 3, 4)))))
        )
    if kind == "real":
        return chance.choice((0.0, 0.5, 1.0, 2.0))
    if kind == "boolean":
        return chance.random() < 0.5
    if kind == "text":
        return chance.choice(("mean", "sum", "none", "reflect", "constant", "linear", "floor", "trunc", "ij", "same"))
    return None
