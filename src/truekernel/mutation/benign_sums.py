"""Rewrites that keep a program's meaning but sum in another order or in other steps: honest results with other roundings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from truekernel.model import Edit
from truekernel.mutation.rule import Example, rule
from truekernel.mutation.statements import (
    ForLoop,
    base_name,
    before_loop,
    body_statements,
    for_loops,
    in_block,
    is_pure,
    is_quiet,
)
from truekernel.source.edits import insert_after, replace
from truekernel.source.query import arguments, callee, operands, operator
from truekernel.source.tree import Node, Tree
from truekernel.source.types import declared_type, expression_type

HONEST = "summation order is free; Higham, Accuracy and Stability of Numerical Algorithms, chapter 4"
_FUSED = ("fmaf", "fma", "__fmaf_rn")


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum over a loop in a scalar variable. `statement`: `acc += term;` or `acc = fmaf(a, b, acc);`; `wrap`: the outermost loop that
    can be put in braces together with what comes before and after."""

    statement: Node
    variable: str
    ctype: str
    fused: tuple[str, str] | None
    term: str
    wrap: Node


def sums(tree: Tree) -> list[Sum]:
    """Sums of float or double terms in scalar variables that nothing else in their loop reads or writes."""
    found = []
    for statement in tree.device("expression_statement"):
        inside = statement.named_children
        loop = statement.enclosing("for_statement")
        if len(inside) != 1 or inside[0].kind != "assignment_expression" or loop is None:
            continue
        target, right = operands(inside[0])
        known = declared_type(target) if target.kind == "identifier" else None
        wrap = _wrappable(loop)
        if (
            known is None
            or not known.scalar
            or known.base not in ("float", "double")
            or wrap is None
            or not is_quiet(right)
        ):
            continue
        if _escapes(wrap) or not _only_summed(wrap, target.text, inside[0]) or _declared_in(wrap, target.text):
            continue
        given = arguments(right)
        if operator(inside[0]) == "+=":
            found.append(Sum(statement, target.text, known.base, None, right.text, wrap))
        elif (
            operator(inside[0]) == "=" and callee(right) in _FUSED and len(given) == 3 and given[2].text == target.text
        ):
            factors = (given[0].text, given[1].text)
            found.append(Sum(statement, target.text, known.base, factors, f"{factors[0]} * {factors[1]}", wrap))
    return found


def _wrappable(loop: Node) -> Node | None:
    """`loop`, or a loop of which it is the whole body, when it stands in braces."""
    while loop.parent is not None and loop.parent.kind == "for_statement":
        loop = loop.parent
    return loop if in_block(loop) else None


def _escapes(loop: Node) -> bool:
    """Whether a jump out of a loop skips what comes after it."""
    return bool(loop.find("return_statement", "goto_statement"))


def _only_summed(loop: Node, name: str, assignment: Node) -> bool:
    """Whether `name` occurs in a loop only as the target (and the third factor) of one sum."""
    places = [node for node in loop.find("identifier") if node.text == name]
    allowed = 1 if operator(assignment) == "+=" else 2
    return len(places) == allowed and all(assignment.start <= node.start < assignment.end for node in places)


def _declared_in(loop: Node, name: str) -> bool:
    return any(base_name(node) == name for node in loop.find("init_declarator"))


def _rewritten(found: list[Sum], declare: str, step: str, finish: str) -> Iterator[tuple[Edit, ...]]:
    """One variant for all sums: `declare` before the loop, `step` for each term, `finish` after it. Each text is formatted with
    n (a number), type, acc, term."""
    edits: list[Edit] = []
    wrapped: dict[Node, list[dict[str, object]]] = {}
    for number, item in enumerate(found):
        words = {"n": number, "type": item.ctype, "acc": item.variable, "term": item.term, "sum": item.statement.text}
        edits.append(replace(item.statement, "{ " + step.format(**words) + " }"))
        wrapped.setdefault(item.wrap, []).append(words)
    for loop, sums_of_loop in wrapped.items():
        edits.append(before_loop(loop, " ".join(["{", *(declare.format(**words) for words in sums_of_loop)])))
        edits.append(insert_after(loop, " ".join(["", *(finish.format(**words) for words in sums_of_loop), "}"])))
    if edits:
        yield tuple(edits)


@rule(
    "two-partial-sums",
    "benign",
    source=HONEST,
    examples=(
        Example(
            "float s = 0; for (int i = 0; i < n; ++i) s += x[i];",
            "float s = 0; { float tk_other0 = 0; bool tk_odd0 = false; for (int i = 0; i < n; ++i) "
            "{ if (tk_odd0) tk_other0 += x[i]; else s += x[i]; tk_odd0 = !tk_odd0; } s += tk_other0; }",
        ),
        Example(
            "{ float s;\n#pragma unroll\nfor (int i = 0; i < n; ++i) s += x[i]; }",
            "{ float s;\n{ float tk_other0 = 0; bool tk_odd0 = false;\n#pragma unroll\nfor (int i = 0; i < n; ++i) "
            "{ if (tk_odd0) tk_other0 += x[i]; else s += x[i]; tk_odd0 = !tk_odd0; } s += tk_other0; } }",
        ),
        Example("float s = 0; for (int i = 0; i < n; ++i) { s += x[i]; y[i] = s; }", None),
    ),
)
def two_partial_sums(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Every second term of a sum goes to a sum of its own (other roundings)."""
    yield from _rewritten(
        sums(tree),
        "{type} tk_other{n} = 0; bool tk_odd{n} = false;",
        "if (tk_odd{n}) tk_other{n} += {term}; else {sum} tk_odd{n} = !tk_odd{n};",
        "{acc} += tk_other{n};",
    )


@rule(
    "four-partial-sums",
    "benign",
    source=f"{HONEST}; nvcc -fmad=false",
    flags=("fma=off",),
    examples=(
        Example(
            "float s = 0; for (int i = 0; i < n; ++i) s += x[i];",
            "float s = 0; { float tk_part0[4] = {0, 0, 0, 0}; unsigned int tk_next0 = 0; for (int i = 0; i < n; ++i) "
            "{ tk_part0[tk_next0++ & 3u] += x[i]; } s += (tk_part0[0] + tk_part0[1]) + (tk_part0[2] + tk_part0[3]); }",
        ),
        Example("float s = 0; for (int i = 0; i < n; ++i) { s += x[i]; y[i] = s; }", None),
    ),
)
def four_partial_sums(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Terms of a sum go to four sums in turn, and nothing is fused (other roundings)."""
    yield from _rewritten(
        sums(tree),
        "{type} tk_part{n}[4] = {{0, 0, 0, 0}}; unsigned int tk_next{n} = 0;",
        "tk_part{n}[tk_next{n}++ & 3u] += {term};",
        "{acc} += (tk_part{n}[0] + tk_part{n}[1]) + (tk_part{n}[2] + tk_part{n}[3]);",
    )


@rule(
    "sum-in-double",
    "benign",
    source=HONEST,
    examples=(
        Example(
            "float s = 0; for (int i = 0; i < n; ++i) s += x[i];",
            "float s = 0; { double tk_wide0 = 0; for (int i = 0; i < n; ++i) { tk_wide0 += (double)(x[i]); } s = (float)(s + tk_wide0); }",
        ),
        Example(
            "float s = 0, t = 0; for (int i = 0; i < n; ++i) { s += x[i]; t = fmaf(x[i], w[i], t); }",
            "float s = 0, t = 0; { double tk_wide0 = 0; double tk_wide1 = 0; for (int i = 0; i < n; ++i) "
            "{ { tk_wide0 += (double)(x[i]); } { tk_wide1 += (double)(x[i]) * (double)(w[i]); } } "
            "s = (float)(s + tk_wide0); t = (float)(t + tk_wide1); }",
        ),
        Example("double s = 0; for (int i = 0; i < n; ++i) s += x[i];", None),
    ),
)
def sum_in_double(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Float sums are kept in double precision (other roundings, fewer)."""
    single = [item for item in sums(tree) if item.ctype == "float"]
    wide = []
    for item in single:
        term = f"(double)({item.fused[0]}) * (double)({item.fused[1]})" if item.fused else f"(double)({item.term})"
        wide.append(Sum(item.statement, item.variable, item.ctype, item.fused, term, item.wrap))
    yield from _rewritten(
        wide, "double tk_wide{n} = 0;", "tk_wide{n} += {term};", "{acc} = (float)({acc} + tk_wide{n});"
    )


def _reversible(loop: ForLoop) -> bool:
    """Whether the passes of a loop may run in any order: each adds to sums that nothing else in the loop reads, and does nothing else."""
    step = "".join(loop.update.text.split())
    unit = step in (f"++{loop.variable}", f"{loop.variable}++", f"{loop.variable}+=1")
    signed = declared_type(loop.node.find("init_declarator")[0].children[0]) if loop.declared else None
    if not unit or signed is None or signed.base not in ("int", "long long"):
        return False
    condition = loop.condition
    if (
        condition.kind != "binary_expression"
        or operator(condition) != "<"
        or operands(condition)[0].text != loop.variable
    ):
        return False
    bound = operands(condition)[1]
    written: set[str] = set()
    if not is_pure(bound) or not is_pure(loop.start) or not all(_adds(s, written) for s in body_statements(loop.body)):
        return False
    names = {node.text for node in (*bound.find("identifier"), *loop.start.find("identifier"))}
    return bool(written) and not names & written and all(_reads_once(loop.body, name) for name in written)


def _adds(statement: Node, written: set[str]) -> bool:
    """Whether a statement only adds to sums (their names go to `written`), or names a value for doing so."""
    if statement.kind.startswith("preproc"):
        return True
    if statement.kind == "declaration":
        return all(is_quiet(node) for node in statement.named_children) and bool(statement.find("init_declarator"))
    if statement.kind == "compound_statement":
        return all(_adds(inner, written) for inner in statement.named_children)
    if statement.kind == "for_statement":
        body = statement.field("body")
        return body is not None and all(_adds(inner, written) for inner in body_statements(body))
    inside = statement.named_children
    if statement.kind != "expression_statement" or len(inside) != 1 or inside[0].kind != "assignment_expression":
        return False
    target, right = operands(inside[0])
    found = expression_type(target)
    if found is None or not found.floating or not is_quiet(right) or base_name(target) == "":
        return False
    given = arguments(right)
    adds = operator(inside[0]) == "+=" or (
        operator(inside[0]) == "=" and callee(right) in _FUSED and given[2].text == target.text
    )
    written.add(base_name(target))
    return adds


def _reads_once(body: Node, name: str) -> bool:
    """Whether sums called `name` occur only as targets of their own additions."""
    for node in body.find("identifier"):
        if node.text != name:
            continue
        assignment = node.enclosing("assignment_expression")
        if assignment is None or not _is_part_of_sum(node, assignment):
            return False
    return True


def _is_part_of_sum(node: Node, assignment: Node) -> bool:
    target, right = operands(assignment)
    if target.start <= node.start < target.end:
        return base_name(target) == node.text and target.find("identifier")[0] is node
    given = arguments(right)
    own = given[2] if callee(right) in _FUSED and len(given) == 3 and given[2].text == target.text else None
    return own is not None and own.start == node.start


@rule(
    "loop-reversed",
    "benign",
    source=HONEST,
    examples=(
        Example(
            "float s = 0; for (int i = 0; i < n; ++i) s += x[i] * w[i];",
            "float s = 0; for (int i = (n) - 1; i >= 0; --i) s += x[i] * w[i];",
        ),
        Example("float s = 0; for (int i = 0; i < n; ++i) { s += x[i]; y[i] = s; }", None),
        Example("float s = 0; for (int i = 0; i < n; ++i) s = s * 2.0f + x[i];", None),
    ),
)
def loop_reversed(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Sums are taken from the last term to the first (other roundings)."""
    edits: list[Edit] = []
    reach = 0
    for loop in for_loops(tree):
        if loop.node.start < reach or not _reversible(loop):
            continue
        start = loop.start.text if loop.start.kind in ("number_literal", "identifier") else f"({loop.start.text})"
        edits += [
            replace(loop.start, f"({operands(loop.condition)[1].text}) - 1"),
            replace(loop.condition, f"{loop.variable} >= {start}"),
            replace(loop.update, f"--{loop.variable}"),
        ]
        reach = loop.node.end
    if edits:
        yield tuple(edits)
