"""What the text of an evaluation script shows: habits by which wrong or slow kernels pass. Each rule names the harm; a place in the text is a question to its author, not a proof."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from truekernel.errors import BadInputError

LOOSE = 1e-3
"""Absolute or relative tolerances from which on float32 results of lower precision pass."""
CLOCKS = ("time", "perf_counter", "perf_counter_ns", "monotonic", "time_ns")


@dataclass(frozen=True, slots=True)
class Found:
    """A place in a script. `rule`: its name in `RULES`."""

    rule: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Rule:
    """`harm`: what can go wrong where it applies."""

    name: str
    harm: str
    find: Callable[[ast.Module], Iterator[tuple[int, str]]]


def read(script: Path) -> list[Found]:
    """All places, by line. Raises BadInputError for a file that is no Python."""
    try:
        tree = ast.parse(script.read_bytes(), filename=str(script))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise BadInputError(f"{script}:{line}: no Python: {getattr(error, 'msg', error)}") from None
    found = [Found(rule.name, line, text) for rule in RULES for line, text in rule.find(tree)]
    return sorted(found, key=lambda one: (one.line, one.rule))


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _name(node: ast.expr) -> str:
    """Dotted name of an expression; "" for others."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ".".join(["", *reversed(parts)]) if parts else ""
    return ".".join([node.id, *reversed(parts)])


def _last(call: ast.Call) -> str:
    return _name(call.func).rpartition(".")[2]


def _constants(tree: ast.Module) -> dict[str, float]:
    """Numbers that names are bound to once."""
    found: dict[str, float] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
            if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
                found[name] = max(float(value.value), found.get(name, 0.0))
    return found


def _loose(tree: ast.Module) -> Iterator[tuple[int, str]]:
    constants = _constants(tree)
    for call in _calls(tree):
        if _last(call) not in ("allclose", "isclose", "assert_close", "assert_allclose"):
            continue
        given = {word.arg: word.value for word in call.keywords if word.arg in ("rtol", "atol")}
        given |= dict(zip(("rtol", "atol"), call.args[2:4], strict=False))
        for word, value in given.items():
            number = value.value if isinstance(value, ast.Constant) else constants.get(_name(value))
            if isinstance(number, int | float) and number >= LOOSE:
                yield call.lineno, f"{word}={number:g}"


def _equal_nan(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for call in _calls(tree):
        for word in call.keywords:
            if word.arg == "equal_nan" and isinstance(word.value, ast.Constant) and word.value.value is True:
                yield call.lineno, f"{_last(call)}(equal_nan=True)"


def _executed(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for call in _calls(tree):
        name = _name(call.func)
        if (name in ("exec", "eval") and call.args and not isinstance(call.args[0], ast.Constant)) or name.endswith(
            (".exec_module", "runpy.run_path")
        ):
            yield call.lineno, f"{name.lstrip('.')}(...)"


def _switches(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Attribute) and ".backends." in f".{_name(target)}":
                    yield node.lineno, f"{_name(target)} = ..."
                if isinstance(target, ast.Subscript) and _name(target.value).endswith("environ"):
                    yield node.lineno, f"{_name(target.value)}[...] = ..."
        elif isinstance(node, ast.Call) and _last(node) in (
            "set_float32_matmul_precision",
            "set_num_threads",
            "set_default_dtype",
            "set_flush_denormal",
            "use_deterministic_algorithms",
        ):
            yield node.lineno, f"{_last(node)}(...)"


def _public_seed(tree: ast.Module) -> Iterator[tuple[int, str]]:
    constants = _constants(tree)
    for call in _calls(tree):
        if _last(call) in ("manual_seed", "manual_seed_all", "seed") and call.args:
            value = call.args[0]
            number = value.value if isinstance(value, ast.Constant) else constants.get(_name(value))
            if isinstance(number, int | float):
                yield call.lineno, f"{_last(call)}({number:g})"


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _unsynchronised(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Wall clocks in a function that never waits for the device, in a file that uses one."""
    uses_device = any(
        (isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("cuda"))
        or (isinstance(node, ast.Attribute) and node.attr == "cuda")
        for node in ast.walk(tree)
    )
    if not uses_device:
        return
    for function in _functions(tree):
        names = [_last(call) for call in _calls(function)]
        readings = [call for call in _calls(function) if _last(call) in CLOCKS]
        if len(readings) >= 2 and not any("synchronize" in name or name == "item" for name in names):
            yield readings[0].lineno, f"{_name(readings[0].func)}() in {function.name}()"


def _one_stream(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Events around a call, and no wait for the whole device before the last is recorded."""
    for function in _functions(tree):
        records = sorted((call for call in _calls(function) if _last(call) == "record"), key=lambda c: c.lineno)
        if len(records) < 2 or not any(_last(call) == "elapsed_time" for call in _calls(function)):
            continue
        waits = [call.lineno for call in _calls(function) if _name(call.func).endswith("cuda.synchronize")]
        if not any(records[0].lineno < line < records[-1].lineno for line in waits):
            yield records[-1].lineno, f"{_name(records[-1].func)}() in {function.name}()"


def _swallowed(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            broad = node.type is None or _name(node.type) in ("Exception", "BaseException")
            if broad and all(isinstance(one, ast.Pass | ast.Continue) for one in node.body):
                yield node.lineno, "except: " + ("pass" if isinstance(node.body[0], ast.Pass) else "continue")


def _aggregates(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Comparisons of sums or means of outputs, in which errors cancel."""
    for call in _calls(tree):
        if _last(call) in ("allclose", "isclose", "assert_close", "assert_allclose", "isclose", "equal"):
            inner = [
                one for one in call.args[:2] if isinstance(one, ast.Call) and _last(one) in ("sum", "mean", "norm")
            ]
            if len(inner) == 2:
                yield call.lineno, f"{_last(call)} of {_last(inner[0])}()"


RULES: tuple[Rule, ...] = (
    Rule("loose tolerance", "results of a lower precision, or none at all where outputs are small, pass", _loose),
    Rule("equal_nan", "NaN passes wherever the reference has one", _equal_nan),
    Rule("shared process", "what is executed here can change the reference, the clock and the comparison", _executed),
    Rule("switch written", "what runs afterwards in this process runs under other conditions", _switches),
    Rule("public seed", "inputs are known beforehand, so that outputs can be stored", _public_seed),
    Rule("clock without a wait", "kernels run on after the clock was read", _unsynchronised),
    Rule(
        "events of one stream",
        "work on another stream is not timed: wait for the device before the last event",
        _one_stream,
    ),
    Rule("swallowed error", "a candidate that fails is passed over", _swallowed),
    Rule("compared sums", "errors of opposite signs cancel", _aggregates),
)
