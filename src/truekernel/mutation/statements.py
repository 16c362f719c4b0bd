"""Statements and calls of device code: where they stand, what they touch, and how loops over them are written."""

from __future__ import annotations

import re
from dataclasses import dataclass

from truekernel.model import Edit
from truekernel.source.edits import insert_before
from truekernel.source.query import arguments, bare, callee, operands, operator, receiver
from truekernel.source.tree import Node, Tree, function_name

LOOPS = ("for_statement", "while_statement", "do_statement")
SHUFFLES = frozenset(
    {
        *("__shfl_sync", "__shfl_down_sync", "__shfl_up_sync", "__shfl_xor_sync"),
        *("shfl", "shfl_down", "shfl_up", "shfl_xor"),
    }
)
_ZERO = re.compile(r"0*(?:0|0\.0*|\.0+)[uUlLfF]*|0x0+[uUlL]*")
_ATOMIC = re.compile(r"atomic(?:Add|Sub|Inc|Dec|Min|Max|And|Or|Xor|Exch|CAS)(?:_block|_system)?")
_PURE_CALLS = re.compile(
    r"f?absf?|f?m(?:in|ax)f?|fmaf?|sqrtf?|rsqrtf?|(?:expm1|exp|exp2|exp10|log|log1p|log2|log10|pow|tanh|sinh?|cosh?|erfc?|floor|ceil|rint"
    r"|round|trunc|fmod|copysign|__exp|__log|__pow|__sin|__cos|__tan)f?|__f(?:add|sub|mul|div|maf|sqrt|rcp)(?:idef|_r[nzud])?"
    r"|__ldg|isnan|isinf|isfinite|__(?:half2float|float2half(?:_r[nz])?|bfloat162float|float2bfloat16(?:_r[nz])?)"
    r"|__(?:float_as_u?int|u?int_as_float)|__h(?:add|mul|sub|fma|max|min)2?|static_cast|int|float|double|size_t|unsigned"
)


def calls(tree: Tree, *names: str) -> list[Node]:
    """Calls in device code of functions or methods of these names."""
    return [node for node in tree.device("call_expression") if callee(node) in names]


def is_atomic(node: Node) -> bool:
    """Whether `node` calls one of CUDA's atomic functions."""
    return node.kind == "call_expression" and _ATOMIC.fullmatch(callee(node)) is not None


def group_kind(call: Node) -> str:
    """What `g` in `g.sync()` or `sync(g)` is, as its declaration in the same function tells: "grid", "block", or "" (a tile, or not known)."""
    group = receiver(call)
    if group is None:
        given = arguments(call)
        group = given[0] if given else None
    function = call.function
    if group is None or function is None:
        return ""
    if "this_grid" in group.text:
        return "grid"
    if "this_thread_block" in group.text:
        return "block"
    name = re.escape(group.text)
    if re.search(rf"\bgrid_group\s*&?\s*{name}\b|\b{name}\s*=\s*[\w:]*this_grid\s*\(", function.text):
        return "grid"
    if re.search(rf"\bthread_block\s*&?\s*{name}\b|\b{name}\s*=\s*[\w:]*this_thread_block\s*\(", function.text):
        return "block"
    return ""


def only_call(statement: Node) -> Node | None:
    """The call that a statement `f(...);` consists of, or None."""
    if statement.kind != "expression_statement":
        return None
    inside = statement.named_children
    return inside[0] if len(inside) == 1 and inside[0].kind == "call_expression" else None


def call_statements(tree: Tree, *names: str) -> list[Node]:
    """Statements of device code that consist of one call of a function or method of these names."""
    return [
        node
        for node in tree.device("expression_statement")
        if (call := only_call(node)) is not None and callee(call) in names
    ]


def neighbours(statement: Node) -> tuple[Node | None, Node | None]:
    """The statements right before and after one in the same block; None at its ends and for bodies without braces."""
    if statement.parent is None or statement.parent.kind != "compound_statement":
        return None, None
    siblings = statement.parent.named_children
    place = siblings.index(statement)
    before = siblings[place - 1] if place else None
    after = siblings[place + 1] if place + 1 < len(siblings) else None
    return before, after


def in_block(statement: Node) -> bool:
    """Whether a statement stands in braces, where one may be put before or after it."""
    return statement.parent is not None and statement.parent.kind == "compound_statement"


def body_statements(body: Node) -> list[Node]:
    """The statements of a body with or without braces."""
    return body.named_children if body.kind == "compound_statement" else [body]


def writes_memory(node: Node) -> bool:
    """Whether an assignment to an element or through a pointer, or an atomic, stands in `node`."""
    for inner in node.find("assignment_expression", "update_expression", "call_expression"):
        target = inner.field("left") or inner.field("argument")
        if target is not None and inner.kind != "call_expression" and is_element(target):
            return True
        if is_atomic(inner):
            return True
    return False


def reads_memory(node: Node) -> bool:
    """Whether an element is read, or something is read through a pointer, in `node`."""
    stored = {
        id(target)
        for inner in node.find("assignment_expression")
        if operator(inner) == "=" and (target := inner.field("left")) is not None
    }
    return any(id(inner) not in stored for inner in node.find("subscript_expression"))


def is_element(node: Node) -> bool:
    """Whether `node` is `a[i]`, `*p`, or a member of such an element (`a[i].x`)."""
    node = bare(node)
    while node.kind == "field_expression":
        argument = node.field("argument")
        if argument is None:
            return False
        node = bare(argument)
    return node.kind == "subscript_expression" or (node.kind == "pointer_expression" and node.text.startswith("*"))


def base_name(node: Node) -> str:
    """First identifier of `a[i]`, `*a`, `&a[i]`, `a.x`: the name of the thing that is touched."""
    names = node.find("identifier")
    return names[0].text if names else ""


def is_zero(node: Node) -> bool:
    """Whether `node` is a literal zero of any type."""
    return _ZERO.fullmatch(bare(node).text) is not None


def is_pure(node: Node) -> bool:
    """Whether evaluating `node` twice, or earlier, or in another order, changes nothing: no assignments, no calls but arithmetic ones."""
    if node.find(
        "assignment_expression", "update_expression", "lambda_expression", "gnu_asm_expression", "comma_expression"
    ):
        return False
    return all(_PURE_CALLS.fullmatch(callee(call)) for call in node.find("call_expression"))


@dataclass(frozen=True, slots=True)
class ForLoop:
    """`for (init; condition; update) body` over one variable. `start`: the variable's first value, `declared` where the loop declares it."""

    node: Node
    variable: str
    start: Node
    declared: bool
    ctype: str
    condition: Node
    update: Node
    body: Node


def for_loop(node: Node) -> ForLoop | None:
    """A `for` statement with a single variable, taken apart; None for other shapes."""
    init, condition, update, body = (node.field(name) for name in ("initializer", "condition", "update", "body"))
    if node.kind != "for_statement" or init is None or condition is None or update is None or body is None:
        return None
    if init.kind == "declaration":
        declarators = [child for child in init.named_children if child.kind == "init_declarator"]
        ctype = init.field("type")
        if len(declarators) != 1 or ctype is None:
            return None
        name, start = declarators[0].field("declarator"), declarators[0].field("value")
        if name is None or name.kind != "identifier" or start is None:
            return None
        return ForLoop(node, name.text, start, True, ctype.text, condition, update, body)
    if init.kind == "assignment_expression" and operator(init) == "=":
        name, start = operands(init)
        return ForLoop(node, name.text, start, False, "", condition, update, body)
    return None


def for_loops(tree: Tree) -> list[ForLoop]:
    """All such loops of device code."""
    return [loop for node in tree.device("for_statement") if (loop := for_loop(node)) is not None]


def assigned_names(node: Node) -> set[str]:
    """Names of variables, and of arrays whose elements, are written in `node` (assignments, ++, declarations)."""
    names: set[str] = set()
    for inner in node.find("assignment_expression", "update_expression", "init_declarator"):
        target = inner.field("left") or inner.field("argument") or inner.field("declarator")
        if target is not None:
            names.add(base_name(target))
    return names


def initial_value(name: Node) -> Node | None:
    """What the variable that `name` names was initialised with, when nothing else is ever assigned to it; otherwise None."""
    function = name.function
    if function is None:
        return None
    found = None
    for node in function.find("assignment_expression", "update_expression", "init_declarator", "pointer_expression"):
        target = node.field("left") or node.field("argument") or node.field("declarator")
        if target is None or target.text != name.text or (node.kind == "pointer_expression" and node.text[0] != "&"):
            continue
        if node.kind != "init_declarator" or (found is not None and node.start < name.start):
            return None
        scope = node.enclosing("compound_statement", "for_statement")
        if node.end <= name.start and scope is not None and name.end <= scope.end:
            found = node.field("value")
    return found


_JOINS = re.compile(r"_sync|shfl|atomic|__syncthreads|\bsync\b|\bbarrier\b|asm")


def is_quiet(node: Node) -> bool:
    """Whether evaluating `node` is a matter of the own thread alone and writes nothing.

    Calls must be arithmetic ones, or of functions of this file that neither meet other threads nor write memory or their arguments.
    """
    if node.find(
        "assignment_expression", "update_expression", "lambda_expression", "gnu_asm_expression", "comma_expression"
    ):
        return False
    for call in node.find("call_expression"):
        if _PURE_CALLS.fullmatch(callee(call)):
            continue
        bodies = [function for function in node.tree.device_functions if function_name(function) == callee(call)]
        if not bodies or any(
            _JOINS.search(body.text) or writes_memory(body) or _takes_reference(body) for body in bodies
        ):
            return False
    return True


def _takes_reference(function: Node) -> bool:
    parameters = function.find("parameter_declaration")
    return any("&" in parameter.text and not parameter.text.startswith("const ") for parameter in parameters)


def outermost(nodes: list[Node]) -> list[Node]:
    """Those of `nodes` (in the order of the text) that lie in none of the others."""
    kept: list[Node] = []
    for node in nodes:
        if not kept or node.start >= kept[-1].end:
            kept.append(node)
    return kept


def before_loop(loop: Node, text: str) -> Edit:
    """Put `text` before a statement, and before the line of a `#pragma` that belongs to it."""
    before, _ = neighbours(loop)
    if before is None or not before.kind.startswith("preproc"):
        return insert_before(loop, f"{text} ")
    line = loop.tree.data.rfind(b"\n", 0, before.start) + 1
    return Edit(line, line, f"{text}\n")
