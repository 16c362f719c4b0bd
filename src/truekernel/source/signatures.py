"""Signatures of kernels: what a launch plan needs to pass arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from truekernel.errors import BadInputError
from truekernel.source.c_types import CType, canonical
from truekernel.source.tree import Node, function_name, parse_cuda
from truekernel.source.types import declarator_parts, type_of


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel parameter. `ctype`: canonical name of the value, or of what it points at ("float", "unsigned long long", "float4", "T");
    `pointer`: whether it is a pointer; `const`: whether what it points at is const."""

    name: str
    ctype: str
    pointer: bool
    const: bool


@dataclass(frozen=True, slots=True)
class TemplateParameter:
    """A template parameter. `ctype`: canonical name of a value's type, None for a type; `default`: as written, None without."""

    name: str
    ctype: str | None
    default: str | None = None


@dataclass(frozen=True, slots=True)
class KernelSignature:
    """A `__global__` function: name, template parameters (empty for a plain kernel) and parameters."""

    name: str
    template: tuple[TemplateParameter, ...]
    params: tuple[Parameter, ...]

    def bind(self, expression: str) -> KernelSignature:
        """This kernel with the template arguments of a name expression: `k<256, float>` makes a parameter `T v` a `float v`.

        Arguments left out take their defaults; what the kernel's parameters let a compiler deduce stays open.
        """
        given = _template_arguments(expression)
        if len(given) > len(self.template):
            raise BadInputError(
                f"{expression}: kernel {self.name} takes {len(self.template)} template arguments, not {len(given)}"
            )
        bound: dict[str, str] = {}
        for number, parameter in enumerate(self.template):
            value = given[number] if number < len(given) else parameter.default
            if parameter.ctype is None and value is not None:
                bound[parameter.name] = canonical(value)
        params = tuple(replace(p, ctype=bound.get(p.ctype, p.ctype)) for p in self.params)
        return replace(self, params=params)


def kernel_signatures(source: str, path: str = "<text>") -> dict[str, KernelSignature]:
    """Signatures of all `__global__` functions that have a body, by name, in the order of the source. Raises SourceError when it doesn't parse."""
    return dict(_signatures(source, path))


@lru_cache(maxsize=16)
def _signatures(source: str, path: str) -> Mapping[str, KernelSignature]:
    # An audit asks again for every mutant of a launch plan, whose source stays the same.
    found: dict[str, KernelSignature] = {}
    for function in parse_cuda(source, path).device_functions:
        if any(child.kind == "__global__" for child in function.children):
            name = function_name(function)
            found.setdefault(name, KernelSignature(name, _template(function), parameters(function)))
    return found


def parameters(function: Node) -> tuple[Parameter, ...]:
    """Parameters of a function definition, in order."""
    listed = function.find("parameter_list")
    found = []
    for node in listed[0].named_children if listed else []:
        base = type_of(node)
        if base is None or node.text == "void":
            continue
        name, pointer, extents = declarator_parts(node.field("declarator"))
        whole: CType = replace(base, pointer=base.pointer + pointer, extents=extents + base.extents)
        found.append(Parameter(name, whole.base, not whole.scalar, whole.const))
    return tuple(found)


def _template(function: Node) -> tuple[TemplateParameter, ...]:
    owner = function.parent
    listed = owner.field("parameters") if owner is not None and owner.kind == "template_declaration" else None
    found = []
    for node in listed.named_children if listed is not None else []:
        default = node.field("default_value") or node.field("default_type")
        if "type_parameter" in node.kind:
            names = node.find("type_identifier")
            found.append(TemplateParameter(names[0].text if names else "", None, default.text if default else None))
        else:
            base = type_of(node)
            name, _, _ = declarator_parts(node.field("declarator"))
            found.append(TemplateParameter(name, base.base if base else "int", default.text if default else None))
    return tuple(found)


def _template_arguments(expression: str) -> list[str]:
    """`k<f<1, 2>, float>` gives ["f<1, 2>", "float"]."""
    if "<" not in expression:
        return []
    return pieces(expression[expression.index("<") + 1 : expression.rindex(">")])


def pieces(text: str) -> list[str]:
    """What commas outside brackets divide: `f<1, 2>, float` gives ["f<1, 2>", "float"]."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "<([") - (letter in ">)]")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [piece.strip() for piece in found if piece.strip()]
