"""What somebody hands in to be judged, read as text: nothing of it runs here."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from truekernel.errors import BadInputError, SourceError
from truekernel.model import Problem
from truekernel.source import cut_kernels, parse_cuda, translate_solve

Form = Literal["plan", "solve", "model", "function"]
LARGEST = 4 << 20
"""Bytes of a source; generated kernels have some kilobytes."""
MODEL = "ModelNew"
_NEEDS_GPU = {
    "triton": "Triton kernels",
    "cupy": "CuPy kernels",
    "pycuda": "PyCUDA kernels",
    "numba.cuda": "Numba kernels",
    "torch.utils.cpp_extension": "inline CUDA",
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """`form`: plan = CUDA with a launch plan; solve = CUDA whose host function solve(...) was translated into one; model = Python with `class ModelNew`; function = Python with a
    function of the problem's tensors. `text`: its own text; `source`, `plan`: device code and launch plan (CUDA); `attribute`: what is called (Python)."""

    name: str
    form: Form
    text: str
    source: str = ""
    plan: str = ""
    attribute: str = ""

    @property
    def is_cuda(self) -> bool:
        """Whether it is device code with a launch plan; else Python."""
        return self.form in ("plan", "solve")

    @property
    def files(self) -> dict[str, str]:
        """Its files as handed in, by name."""
        if self.form == "plan":
            return {f"{self.name}.cu": self.text, f"{self.name}.py": self.plan}
        return {f"{self.name}{'.cu' if self.is_cuda else '.py'}": self.text}

    @property
    def digest(self) -> str:
        """SHA-256 over names and contents of its files."""
        found = hashlib.sha256()
        for name, text in self.files.items():
            found.update(f"{name}\0{len(text)}\0{text}".encode())
        return found.hexdigest()


def load_candidate(path: str, problem: Problem) -> Candidate:
    """Read `FILE.cu` (beside it the launch plan `FILE.py`, or with a host function solve(...)), `FILE.py` with `class ModelNew`, or `FILE.py:FUNCTION`.

    Raises BadInputError, SourceError: one line that says what to mend.
    """
    place, _, attribute = path.partition(":") if ".py:" in path else (path, "", "")
    file = Path(place)
    if file.suffix == ".cu":
        return _cuda(file, problem)
    if file.suffix == ".py":
        return _python(file, attribute)
    raise BadInputError(f"candidate {path}: give a .cu file, or a .py file with class {MODEL}, or FILE.py:FUNCTION")


def read_text(file: Path) -> str:
    """Text of a file. Raises BadInputError."""
    try:
        if not file.is_file():
            raise BadInputError(f"can't read {file}: {'not a file' if file.exists() else 'no such file'}")
        if file.stat().st_size > LARGEST:
            raise BadInputError(f"{file}: larger than {LARGEST >> 20} MiB: that is no source")
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise BadInputError(f"can't read {file}: {why}") from None
    if "\0" in text:
        raise BadInputError(f"{file}: holds a NUL byte: remove it")
    return text


def _cuda(file: Path, problem: Problem) -> Candidate:
    text = read_text(file)
    beside = file.with_suffix(".py")
    if beside.exists():
        parse_cuda(text, str(file))
        plan = read_text(beside)
        tree = _parsed(plan, beside)
        if not any(isinstance(node, ast.FunctionDef) and node.name == "launch" for node in tree.body):
            raise BadInputError(f"{beside}: no function launch(run, inputs, axes): define it")
        return Candidate(file.stem, "plan", text, text, plan)
    return Candidate(
        file.stem, "solve", text, cut_kernels(text, str(file)).source, translate_solve(text, problem, str(file))
    )


def _python(file: Path, attribute: str) -> Candidate:
    text = read_text(file)
    tree = _parsed(text, file)
    for node in ast.walk(tree):
        for name in _imported(node):
            for module, what in _NEEDS_GPU.items():
                if name == module or name.startswith(f"{module}."):
                    raise BadInputError(
                        f"{file}:{node.lineno}: imports {name}: {what} can't be judged without a GPU"  # type: ignore[attr-defined]
                    )
    defined = {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
    } | {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    if attribute:
        if not attribute.isidentifier():
            raise BadInputError(f"candidate {file}:{attribute}: write the name of a function after the colon")
        if attribute not in defined:
            raise BadInputError(
                f"{file}: defines no '{attribute}': it has {', '.join(sorted(defined)[:8]) or 'nothing'}"
            )
        if attribute != MODEL:
            return Candidate(file.stem, "function", text, attribute=attribute)
    if MODEL not in defined:
        raise BadInputError(f"{file}: no class {MODEL}: define it, or name a function as {file.name}:FUNCTION")
    return Candidate(file.stem, "model", text, attribute=MODEL)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def _parsed(text: str, file: Path) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise SourceError(str(file), error.lineno or 1, error.offset or 1, error.msg) from None
    except (RecursionError, MemoryError, ValueError):
        raise BadInputError(f"{file}: can't be read as Python: an expression is nested too deeply") from None
