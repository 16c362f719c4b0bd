"""What the text of a candidate tells: who decides, and how far others can look into it. Nothing of it runs."""

from __future__ import annotations

import ast

from truekernel.errors import BadInputError
from truekernel.judge.candidates import Candidate
from truekernel.judge.compare.records import Auditability, Deciding, Launched
from truekernel.mutation import results, rules
from truekernel.mutation.engine import MOST_BYTES
from truekernel.source import kernel_signatures, parse_cuda
from truekernel.source.deep import deep


def deciding(candidate: Candidate) -> Deciding:
    """Who decided what."""
    if candidate.is_cuda:
        launches: Launched = "plan" if candidate.form == "plan" else "translated host code"
        return Deciding(kernels="candidate", launches=launches, calls=())
    return Deciding(kernels="library", launches="host code of its own", calls=library_calls(candidate.text))


def auditability(candidate: Candidate, *, sanitised: bool) -> Auditability:
    """How far others can look in. `sanitised`: whether a sanitised execution was possible."""
    return Auditability(
        files=len(candidate.files),
        lines=sum(bool(line.strip()) for text in candidate.files.values() for line in text.splitlines()),
        kernels=len(kernel_signatures(candidate.source)) if candidate.is_cuda else 0,
        readable=candidate.is_cuda and not parse_cuda(candidate.source).errors,
        mutated=candidate.is_cuda and _mutated(candidate.source),
        sanitised=sanitised,
    )


@deep
def _mutated(source: str) -> bool:
    if len(source.encode()) > MOST_BYTES:
        return False
    try:
        return any(results(source, rule) for rule in rules().values() if rule.file == "cu")
    except BadInputError:
        return False


def library_calls(text: str) -> tuple[str, ...]:
    """Dotted names of what a Python text calls through its imports, each once, sorted."""
    tree = ast.parse(text)
    imported: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                imported[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module and node.module != "__future__":
            imported |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    found = {_dotted(node.func, imported) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return tuple(sorted(found - {""}))


def _dotted(node: ast.expr, imported: dict[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in imported:
        return ""
    return ".".join((imported[node.id], *reversed(parts)))
