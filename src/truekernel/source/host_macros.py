"""Names that host code takes from elsewhere in the file: constants, macros and one-expression functions, as lines of a plan."""

from __future__ import annotations

import re

from truekernel.errors import SourceError, TruekernelError
from truekernel.source.host_expressions import expression, python_name
from truekernel.source.signatures import parameters
from truekernel.source.tree import Node, Tree, parse_cuda


def definitions(tree: Tree) -> list[str]:
    """Python definitions of the file's constants, macros and host or constexpr functions of one returned expression.

    What can't be said in Python is left out: a plan that needs it fails with its name.
    """
    found: dict[str, list[str]] = {}
    for node in tree.find("preproc_def", "preproc_function_def", "declaration", "function_definition"):
        try:
            if node.kind == "preproc_def":
                found |= _macro(node)
            elif node.kind == "preproc_function_def":
                found |= _function_macro(node)
            elif node.kind == "function_definition":
                found |= _function(node)
            elif node.function is None and re.search(r"\bconst(?:expr)?\b", node.text):
                found |= _constants(node)
        except TruekernelError:
            continue
    return [line for lines in found.values() for line in lines]


def _macro(node: Node) -> dict[str, list[str]]:
    name, value = node.field("name"), node.field("value")
    if name is None or value is None:
        return {}
    return {name.text: [f"{python_name(name.text)} = {_parsed(value.text)}"]}


def _function_macro(node: Node) -> dict[str, list[str]]:
    name, value, given = node.field("name"), node.field("value"), node.field("parameters")
    if name is None or value is None or given is None:
        return {}
    names = ", ".join(python_name(p.text) for p in given.named_children)
    return {name.text: [f"def {python_name(name.text)}({names}):", f"    return {_parsed(value.text)}", ""]}


def _function(node: Node) -> dict[str, list[str]]:
    declarator, body = node.field("declarator"), node.field("body")
    inside = body.named_children if body is not None else []
    name = declarator.field("declarator") if declarator is not None else None
    if name is None or len(inside) != 1 or inside[0].kind != "return_statement" or not inside[0].named_children:
        return {}
    names = ", ".join(python_name(p.name) for p in parameters(node))
    value = expression(inside[0].named_children[0])
    return {name.text: [f"def {python_name(name.text)}({names}):", f"    return {value}", ""]}


def _constants(node: Node) -> dict[str, list[str]]:
    found = {}
    for declarator in node.children:
        name, value = declarator.field("declarator"), declarator.field("value")
        if (
            declarator.kind == "init_declarator"
            and name is not None
            and value is not None
            and name.kind == "identifier"
        ):
            found[name.text] = [f"{python_name(name.text)} = {expression(value)}"]
    return found


def _parsed(text: str) -> str:
    """A macro's text as a Python expression."""
    text = text.split("//", maxsplit=1)[0].replace("\\\n", " ").strip()
    tree = parse_cuda(f"void f() {{ auto macro = {text}; }}")
    value = tree.find("init_declarator")[0].field("value") if not tree.errors else None
    if value is None or value.end - value.start != len(text.encode()):
        raise SourceError(tree.path, 1, 1, "not an expression")
    return expression(value)
