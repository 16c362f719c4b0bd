"""The device part of somebody's CUDA file: host code is blanked, line numbers stay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from truekernel.errors import BadInputError
from truekernel.source.tree import Node, Tree, function_name, is_device_function, parse_cuda

_DEVICE_HEADERS = re.compile(
    r"cuda(?:_runtime(?:_api)?)?\.h|device_(?:launch_parameters|functions|atomic_functions)\.h|cuda_(?:fp16|bf16|fp8|pipeline)\w*\.h(?:pp)?"
    r"|cooperative_groups(?:/\w+)?\.h|mma\.h|math_constants\.h|math_functions\.h|vector_(?:types|functions)\.h|sm_\w+\.h"
    r"|cuda/(?:std/)?\w+|c?(?:float|limits|math|stdint|stddef|assert)(?:\.h)?|type_traits|limits|utility|algorithm|assert\.h"
)
_HOST_TYPES = re.compile(
    r"\bstd::(?!size_t|u?int\d+_t|numeric_limits|min|max)|\b(?:torch|at|c10|py|pybind11|thrust)::|\bcuda[A-Z]\w*|\bFILE\b"
)
_DEVICE_MARK = re.compile(r"\b__(?:global|device|constant|shared|managed)__\b")
_OPEN = (
    "translation_unit",
    "namespace_definition",
    "declaration_list",
    "preproc_if",
    "preproc_ifdef",
    "preproc_else",
    "preproc_elif",
)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A piece of host code that was left out: 1-based line, kind of syntax, and name where it has one."""

    line: int
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class DeviceSource:
    """Device code alone. `source` has as many lines as the file, host code blanked; `dropped` says what is missing."""

    source: str
    dropped: tuple[Dropped, ...]


def cut_kernels(text: str, path: str = "<text>") -> DeviceSource:
    """Cut the kernels out of a CUDA file with host code.

    Kept: `__global__` and `__device__` functions, constexpr functions, constants, macros, structs, templates, type aliases and headers
    of the CUDA toolkit and of C. Dropped: host functions and prototypes, other headers, explicit instantiations, bindings of
    extension modules. Raises SourceError when the text isn't CUDA, BadInputError when no kernel is in it.
    """
    tree = parse_cuda(text, path)
    if not any(child.kind == "__global__" for function in tree.device_functions for child in function.children):
        raise BadInputError(f"{path} holds no __global__ function: nothing to run")
    used = {n.text for function in tree.device_functions for n in function.find("identifier", "type_identifier")}
    data = bytearray(tree.data)
    dropped = []
    for node in _host_nodes(tree.root, used):
        for position in range(node.start, node.end):
            if data[position] not in b"\r\n":
                data[position] = ord(" ")
        dropped.append(Dropped(node.line, node.kind, _name(node)))
    lines = [line.rstrip() for line in data.decode().split("\n")]
    return DeviceSource("\n".join(lines), tuple(dropped))


def host_functions(tree: Tree) -> dict[str, Node]:
    """Definitions of functions that run on the host only, by name."""
    return {
        function_name(node): node for node in tree.functions if not is_device_function(node) and not _is_member(node)
    }


def _is_member(node: Node) -> bool:
    return node.enclosing("field_declaration_list") is not None


def _host_nodes(parent: Node, used: set[str]) -> Iterator[Node]:
    for node in parent.named_children:
        if node.kind in _OPEN:
            yield from _host_nodes(node, used)
        elif node.kind == "linkage_specification":
            body = node.field("body")
            if body is not None and body.kind == "declaration_list":
                yield from _host_nodes(body, used)
            elif body is not None and _is_host(body, used):
                yield node
        elif _is_host(node, used):
            yield node


def _is_host(node: Node, used: set[str]) -> bool:
    text = node.text
    if node.kind == "template_declaration":
        inner = next((c for c in reversed(node.named_children) if c.kind != "template_parameter_list"), node)
        return _is_host(inner, used) if inner is not node else False
    if node.kind == "preproc_include":
        return _DEVICE_HEADERS.fullmatch(text.split(None, 1)[-1].split("//")[0].strip().strip('<>"')) is None
    if node.kind == "function_definition":
        return not is_device_function(node) and "constexpr" not in text[: text.find("{")]
    if node.kind in ("expression_statement", "template_instantiation", "if_statement", "for_statement"):
        return True
    if node.kind in (
        "struct_specifier",
        "class_specifier",
        "alias_declaration",
        "type_definition",
        "using_declaration",
    ):
        name = node.field("name")
        return _HOST_TYPES.search(text) is not None and (name is None or name.text not in used)
    if node.kind == "declaration":
        if _DEVICE_MARK.search(text):
            return False
        prototype = bool(node.find("function_declarator")) and not node.find("init_declarator")
        return prototype or _HOST_TYPES.search(text) is not None
    return node.kind == "ERROR" and _DEVICE_MARK.search(text) is None


def _name(node: Node) -> str:
    functions = node.find("function_definition")
    if functions:
        return function_name(functions[0])
    return node.text.split("\n")[0][:60]
