"""What a candidate must solve: a problem of the corpus, or a user's own reference file."""

from __future__ import annotations

import ast
import atexit
import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from truekernel import corpus
from truekernel.corpus.kernelbench.adapting import adapt
from truekernel.corpus.kernelbench.checkout import ProblemFile
from truekernel.corpus.kernelbench.module_text import NotAProblemError, namespace
from truekernel.corpus.kernelbench.probing import probe
from truekernel.corpus.kernelbench.reference import FileReference
from truekernel.errors import BadInputError, UnknownNameError
from truekernel.judge.candidates import read_text
from truekernel.model import Problem
from truekernel.model.lengths import lengths

REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Posed:
    """A problem and how it was posed. `text`: the reference file, "" for a problem of the corpus; `literals`: arguments that are no tensors, by their place; `booleans`: inputs that
    the candidate gets as bool; `notes`: what differs from the file."""

    problem: Problem
    text: str = ""
    literals: Mapping[int, Any] = field(default_factory=dict)
    booleans: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def stem(self) -> str:
        """Name of the reference file without its ending."""
        return self.problem.name.rpartition("/")[2]

    @property
    def digest(self) -> str:
        """SHA-256 of what the problem is: the reference file, or the shapes of the corpus's problem."""
        return hashlib.sha256((self.text or json.dumps(self.shapes())).encode()).hexdigest()

    def shapes(self) -> dict[str, Any]:
        """The problem without its reference: all that may go behind the walls."""
        problem = self.problem
        return {
            "name": problem.name,
            "axes": {name: axis.audit for name, axis in problem.axes.items()},
            "inputs": [[spec.name, list(spec.shape), spec.dtype] for spec in problem.inputs],
            "parameters": [[spec.name, list(spec.shape), spec.dtype] for spec in problem.parameters],
            "outputs": [[spec.name, list(spec.shape), spec.dtype] for spec in problem.outputs],
            "mutates": list(problem.mutates),
            "constants": dict(problem.constants),
        }

    def output_specs(self, axes: Mapping[str, int]) -> list[tuple[str, tuple[int, ...]]]:
        """(dtype, shape) of each output at these lengths."""
        return [(spec.dtype, tuple(lengths(spec.shape, axes))) for spec in self.problem.outputs]

    def model_arguments(self, axes: Mapping[str, int]) -> list[Any]:
        """What a model is made with at these lengths, as data. Raises BadInputError for what is no plain value."""
        reference = self.problem.reference
        if not isinstance(reference, FileReference):
            return []
        known = {constant.name: constant.value for constant in reference.found.constants}
        changed = tuple((name, length) for name, length in axes.items() if known.get(name, length) != length)
        return [_as_data(value) for value in _init_inputs(self.text, str(reference.path), changed)]


def pose(name: str) -> Posed:
    """The problem of a name of the corpus, or of a file: with `Model`, `get_inputs` and `get_init_inputs` as KernelBench's have, or with a function `reference` and `get_inputs`.

    The file is the user's own: it is looked at in a process of its own, and its reference then runs in ours. Raises UnknownNameError, BadInputError.
    """
    known = corpus.problems()
    if name in known:
        return Posed(known[name])
    if not name.endswith(".py"):
        raise UnknownNameError("problem", name, list(known))
    file = Path(name)
    text = read_text(file)
    given = _as_model(text, file)
    path = file.resolve() if given == text else _written(given, file.stem)
    answer = probe([path])[path]
    if answer.found is None:
        raise BadInputError(f"{file}: can't be a problem: {answer.refused}")
    try:
        adapted = adapt(ProblemFile(0, 0, file.stem, path), answer.found)
    except NotAProblemError as error:
        raise BadInputError(f"{file}: can't be a problem: {error}") from None
    booleans = frozenset(tensor.name for tensor in answer.found.inputs if tensor.dtype == "bool")
    return Posed(adapted.problem, given, answer.found.literals, booleans, adapted.notes)


def _as_model(text: str, file: Path) -> str:
    """A file of functions as one with a model that calls them; one with a model stays as it is."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise BadInputError(f"{file}:{error.lineno}: {error.msg}") from None
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if "Model" in classes:
        return text
    if REFERENCE not in functions or "get_inputs" not in functions:
        raise BadInputError(
            f"{file}: no class Model, nor functions reference(...) and get_inputs(): a problem needs one of both forms"
        )
    wanted = functions[REFERENCE].args
    if wanted.vararg or wanted.kwonlyargs or wanted.kwarg:
        raise BadInputError(f"{file}:{functions[REFERENCE].lineno}: reference must take its tensors as plain arguments")
    names = ", ".join(argument.arg for argument in (*wanted.posonlyargs, *wanted.args))
    lines = [
        "",
        "",
        "import torch as _torch",
        "",
        "",
        "class Model(_torch.nn.Module):",
        f"    def forward(self, {names}):",
        f"        return {REFERENCE}({names})",
    ]
    if "get_init_inputs" not in functions:
        lines += ["", "", "def get_init_inputs():", "    return []"]
    return text + "\n".join(lines) + "\n"


def _written(text: str, stem: str) -> Path:
    """The text as a file that stays until this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="truekernel-problem-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / f"{stem}.py"
    path.write_text(text, encoding="utf-8")
    return path


@lru_cache(maxsize=32)
def _init_inputs(text: str, path: str, changed: tuple[tuple[str, int], ...]) -> tuple[Any, ...]:
    """What the file's own `get_init_inputs` returns with some constants changed."""
    return tuple(namespace(text, path, dict(changed))["get_init_inputs"]())


def _as_data(value: Any) -> Any:
    if isinstance(value, tuple):
        return {"tuple": [_as_data(part) for part in value]}
    if isinstance(value, list):
        return [_as_data(part) for part in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise BadInputError(f"get_init_inputs returns a {type(value).__name__}: candidates get plain values only")
