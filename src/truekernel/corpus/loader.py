"""Find the problems and programs of the corpus, and read a program from a path."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from truekernel.errors import BadInputError, SourceError, UnknownNameError
from truekernel.model import FAMILIES, Problem, Program
from truekernel.source import cut_kernels, parse_cuda, translate_solve

_ROOT = Path(__file__).parent
_BACKENDS = ("simt", "cuda")


def problems() -> dict[str, Problem]:
    """All problems of the corpus by name, family after family in the order of `model.FAMILIES`. Loads torch."""
    return dict(_problems())


def programs() -> dict[str, Program]:
    """All programs of the corpus by name, family after family, by name inside a family."""
    return dict(_programs())


def load_program(path: str | Path, *, problem: str | None = None) -> Program:
    """Read the program whose CUDA source is `path` (or whose path without `.cu` it is).

    The launch plan is the `.py` file of the same name: read as text and parsed, never imported. Without one, the source is taken as
    a file with host code: the kernels are cut out and its host function `solve(...)` is translated into a plan; `problem` must then
    name what it solves, and overrides `PROBLEM` of a plan file otherwise. Raises BadInputError when a file can't be read or a
    constant is missing, UnknownNameError when the corpus has no such problem, SourceError when a file does not parse.
    """
    cu = Path(path)
    if not cu.name or cu.is_dir():
        raise BadInputError(f"--program {path}: a directory: name a .cu file")
    if cu.suffix != ".cu":
        if cu.is_file():
            raise BadInputError(f"--program {path}: not a .cu file: its launch plan, if any, is the .py file beside it")
        cu = cu.with_name(cu.name + ".cu")
    text = _read(cu)
    plan_path = cu.with_suffix(".py")
    plan_source = _read(plan_path) if plan_path.exists() else None
    constants = _plan_constants(plan_source, plan_path) if plan_source is not None else {}
    problem = problem or constants.get("PROBLEM")
    traits, backends = constants.get("TRAITS", ()), constants.get("BACKENDS", _BACKENDS)
    if problem is None:
        raise BadInputError(f"{cu}: no problem given: name one (--solves), or set PROBLEM in {plan_path.name}")
    if problem not in _problems():
        raise UnknownNameError("problem", problem, list(_problems()))
    if plan_source is None:
        source = cut_kernels(text, str(cu)).source
        plan_source = translate_solve(text, _problems()[problem], str(cu))
    else:
        parse_cuda(text, str(cu))
        source = text
    return Program(
        name=cu.stem,
        problem=problem,
        source=source,
        plan_source=plan_source,
        traits=frozenset(traits),
        backends=tuple(backends),
        path=str(cu),
    )


@cache
def _problems() -> Mapping[str, Problem]:
    found: dict[str, Problem] = {}
    for family in _families():
        for problem in import_module(f"{__package__}.{family}.problems").PROBLEMS:
            if problem.name in found or problem.family != family:
                raise BadInputError(
                    f"problem '{problem.name}' of family '{family}': name taken, or another family stated"
                )
            found[problem.name] = problem
    return MappingProxyType(found)


@cache
def _programs() -> Mapping[str, Program]:
    found: dict[str, Program] = {}
    for family in _families():
        for cu in sorted((_ROOT / family).glob("*.cu")):
            if cu.stem in found:
                raise BadInputError(f"two programs are called '{cu.stem}': rename {cu}")
            found[cu.stem] = load_program(cu)
    return MappingProxyType(found)


def _families() -> list[str]:
    return [family for family in FAMILIES if (_ROOT / family / "problems.py").exists()]


def _read(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            raise BadInputError(f"can't read {path}: not a file")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise BadInputError(f"can't read {path}: {why}") from None
    if "\0" in text:
        raise SourceError(str(path), text.count("\n", 0, text.index("\0")) + 1, 1, "holds a NUL byte: remove it")
    return text


def _plan_constants(text: str, path: Path) -> dict[str, Any]:
    """The literal constants PROBLEM, TRAITS and BACKENDS of a plan file; the file must also define `launch`."""
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise SourceError(str(path), error.lineno or 1, error.offset or 1, error.msg) from None
    except (RecursionError, MemoryError):
        raise BadInputError(f"{path}: an expression is nested too deeply: write it in several steps") from None
    if not any(isinstance(node, ast.FunctionDef) and node.name == "launch" for node in module.body):
        raise BadInputError(f"{path}: no function launch(run, inputs, axes): define it")
    constants: dict[str, Any] = {}
    for node in module.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            target, value = node.target, node.value
        else:
            continue
        if target.id in ("PROBLEM", "TRAITS", "BACKENDS"):
            constants[target.id] = _constant(value, target.id, path)
    return constants


def _constant(node: ast.expr, name: str, path: Path) -> object:
    """The value of PROBLEM (a name), TRAITS or BACKENDS (several). Raises SourceError for anything else."""
    value: Any = _literal(node, name, path)
    if name == "PROBLEM":
        good, wanted = isinstance(value, str), 'the name of a problem, such as "softmax"'
    else:
        several = isinstance(value, set | frozenset | tuple | list)
        good = several and all(isinstance(entry, str) for entry in value)
        wanted = "a set or tuple of names"
    if name == "BACKENDS" and good and not (value and set(value) <= set(_BACKENDS)):
        good, wanted = False, f"some of {', '.join(_BACKENDS)}"
    if not good:
        raise SourceError(str(path), node.lineno, node.col_offset + 1, f"{name} must be {wanted}")
    return value


def _literal(node: ast.expr, name: str, path: Path) -> object:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "set" and not node.args:
        return set()
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise SourceError(str(path), node.lineno, node.col_offset + 1, f"{name} must be a literal") from None
