"""Makes mutants: applies rules to a program, drops what changes nothing or breaks the syntax, merges equal results."""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from truekernel.errors import BadInputError, SourceError
from truekernel.model import Edit, MadeBy, Mutant, Program, Site
from truekernel.model.mutant import File
from truekernel.mutation.registry import select
from truekernel.mutation.rule import Rule
from truekernel.source.deep import deep
from truekernel.source.edits import apply_edits
from truekernel.source.python_ast import PlanTree, parse_plan
from truekernel.source.tree import Node, Tree, has_errors, parse_cuda

_CONTEXT = 3
_STREAMS = (Path("/dev/stdin"), Path("/dev/fd/0"))
MOST_BYTES = 1 << 20
MOST_FUNCTIONS = 300
"""Of one file: every mutant holds the whole text, so that time and memory grow with the square of its size."""


@deep
def mutants(program: Program, rules: Mapping[str, Rule] | Iterable[Rule]) -> list[Mutant]:
    """All mutants that `rules` make of `program`, ordered by file (.cu first) and place.

    Mutants of equal content are one, and `made_by` lists all (rule, site) pairs; results equal to the original, results that no
    longer parse, and edits that touch comments, strings or directives are dropped. `id` is a hash of the program's two texts, the
    file and the new text, so it does not depend on which other rules were asked. Also works without a launch plan
    (`plan_source=""`): rules that edit plans then find nothing. Raises SourceError when a text does not parse.
    """
    chosen = list(rules.values()) if isinstance(rules, Mapping) else list(rules)
    made: list[Mutant] = []
    if any(rule.file == "cu" for rule in chosen):
        made += _of_text(program, "cu", chosen)
    if program.plan_source and any(rule.file == "py" for rule in chosen):
        made += _of_text(program, "py", chosen)
    return made


@deep
def mutants_of_file(path: str | Path, rule_patterns: Iterable[str] = ()) -> list[Mutant]:
    """Mutants of a CUDA file that need not be a program of ours.

    Raises BadInputError when the file can't be read or holds no device function, SourceError when it isn't CUDA, UnknownNameError
    for a pattern that names no rule.
    """
    path = Path(path)
    chosen = select(rule_patterns)
    try:
        if not path.is_file() and path not in _STREAMS:
            raise BadInputError(f"can't read {path}: {'not a file' if path.exists() else 'no such file'}")
        text = path.read_bytes()[: MOST_BYTES + 1].decode()
    except OSError as error:
        raise BadInputError(f"can't read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path} is not UTF-8 text (byte {error.start}): convert it first") from None
    if len(text.encode()) > MOST_BYTES:
        raise BadInputError(f"{path} is larger than {MOST_BYTES >> 20} MiB: give a smaller file")
    if "\0" in text:
        raise SourceError(str(path), text.count("\n", 0, text.index("\0")) + 1, 1, "holds a NUL byte: remove it")
    functions = len(parse_cuda(text, str(path)).device_functions)
    if functions > MOST_FUNCTIONS:
        raise BadInputError(f"{path} holds {functions} device functions: the limit is {MOST_FUNCTIONS}, split the file")
    if not functions:
        raise BadInputError(f"{path} holds no __global__ or __device__ function: nothing to mutate")
    return mutants(Program(path.stem, "", text, "", path=str(path)), chosen)


def results(text: str, rule: Rule) -> list[str]:
    """All texts that `rule` makes of `text` (CUDA or plan, as `rule.file` says), in the order of the rule's sites, each once."""
    tree = _parse(text, rule.file, "<text>")
    found = dict.fromkeys(new for edits in rule.sites(tree) if (new := _rewritten(tree, edits, rule)) is not None)
    return list(found)


def _parse(text: str, file: File, path: str) -> Tree | PlanTree:
    return parse_cuda(text, path) if file == "cu" else parse_plan(text, path)


def _of_text(program: Program, file: File, rules: list[Rule]) -> list[Mutant]:
    text = program.source if file == "cu" else program.plan_source
    tree = _parse(text, file, program.path or program.name)
    merged: dict[tuple[str, tuple[str, ...]], tuple[list[MadeBy], list[tuple[Edit, ...]]]] = {}
    for rule in rules:
        if rule.file != file:
            continue
        for edits in rule.sites(tree):
            new = _rewritten(tree, edits, rule)
            if new is None:
                continue
            pairs, ways = merged.setdefault((new, rule.flags), ([], []))
            made_by = _made_by(tree, rule, edits)
            if made_by not in pairs:
                pairs.append(made_by)
            ways.append(tuple(sorted(edits)))
    made = [
        _mutant(program, file, new, flags, min(ways), tuple(sorted(pairs)))
        for (new, flags), (pairs, ways) in merged.items()
    ]
    return sorted(made, key=lambda mutant: (mutant.edits, mutant.flags))


def _rewritten(tree: Tree | PlanTree, edits: tuple[Edit, ...], rule: Rule) -> str | None:
    """The new text, or None when these edits make no mutant."""
    if isinstance(tree, Tree) and not all(tree.may_edit(edit.start, edit.end) for edit in edits):
        return None
    edits = tuple(sorted(edits, key=lambda edit: (edit.start, edit.end)))
    new = apply_edits(tree.text, edits)
    if new == tree.text:
        return new if rule.flags else None
    return new if _parses(new, tree, edits) else None


def _parses(new: str, tree: Tree | PlanTree, edits: tuple[Edit, ...]) -> bool:
    """Whether the edited part still parses: for CUDA the function around the edits, alone where that is possible."""
    if isinstance(tree, PlanTree):
        try:
            ast.parse(new)
        except SyntaxError:
            return False
        return True
    start, end = edits[0].start, max(edit.end for edit in edits)
    function = next((f for f in tree.device_functions if f.start <= start and end <= f.end), None)
    if function is None or not _clean_alone(function):
        return bool(tree.errors) or not has_errors(new)
    moved = [Edit(edit.start - function.start, edit.end - function.start, edit.replacement) for edit in edits]
    return not has_errors(apply_edits(function.text, moved))


def _clean_alone(function: Node) -> bool:
    known: dict[Node, bool] = function.tree.answers.setdefault("clean alone", {})
    if function not in known:
        known[function] = not has_errors(function.text)
    return known[function]


def _made_by(tree: Tree | PlanTree, rule: Rule, edits: tuple[Edit, ...]) -> MadeBy:
    """The site is the hull of the edits, the replacement what the hull becomes."""
    start = min((edit.start for edit in edits), default=0)
    end = max((edit.end for edit in edits), default=0)
    piece = tree.data[start:end].decode()
    moved = [Edit(edit.start - start, edit.end - start, edit.replacement) for edit in edits]
    line, column = tree.position(start)
    return MadeBy(rule.name, rule.rule_class, Site(rule.file, start, end, line, column), apply_edits(piece, moved))


def _mutant(
    program: Program, file: File, new: str, flags: tuple[str, ...], edits: tuple[Edit, ...], made_by: tuple[MadeBy, ...]
) -> Mutant:
    old = program.source if file == "cu" else program.plan_source
    content = "\0".join([program.source, program.plan_source, file, new, *flags])
    return Mutant(
        id=hashlib.sha256(content.encode()).hexdigest()[:16],
        program=program.name,
        file=file,
        edits=edits,
        made_by=made_by,
        diff=_diff(old, new, edits, f"{program.name}.{file}"),
        source=new if file == "cu" else program.source,
        plan_source=new if file == "py" else program.plan_source,
        flags=flags,
    )


def _diff(old: str, new: str, edits: tuple[Edit, ...], name: str) -> str:
    """A unified diff; only the lines around the edits are compared, so that its cost does not grow with the file."""
    if old == new:
        return ""
    before, after = _lines(old), _lines(new)
    data = old.encode()
    first = data.count(b"\n", 0, edits[0].start)
    last = data.count(b"\n", 0, max(edit.end for edit in edits))
    low, rest = max(0, first - _CONTEXT), max(0, len(before) - last - 1 - _CONTEXT)
    window = before[low : len(before) - rest], after[low : len(after) - rest]
    lines = list(difflib.unified_diff(*window, f"a/{name}", f"b/{name}", lineterm="", n=_CONTEXT))
    return "\n".join(_shifted(line, low) if line.startswith("@@") else line for line in lines)


def _lines(text: str) -> list[str]:
    """Lines as a unified diff has them, with its note where the last one does not end."""
    lines = text.split("\n")
    if lines[-1]:
        lines[-1] += "\n\\ No newline at end of file"
        return lines
    return lines[:-1]


def _shifted(header: str, by: int) -> str:
    return re.sub(r"([-+])(\d+)", lambda match: f"{match[1]}{int(match[2]) + by}", header)
