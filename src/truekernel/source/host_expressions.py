"""Host expressions of C++ as expressions of a launch plan (Python)."""

from __future__ import annotations

import keyword
import re

from truekernel.errors import SourceError
from truekernel.source.c_types import canonical
from truekernel.source.query import arguments, callee, operands, operator
from truekernel.source.tree import Node
from truekernel.source.types import expression_type

_BYTES = {
    "float": 4,
    "double": 8,
    "int": 4,
    "unsigned int": 4,
    "long long": 8,
    "unsigned long long": 8,
    "short": 2,
    "bool": 1,
}
_BYTES |= {"char": 1, "unsigned char": 1, "signed char": 1, "unsigned short": 2, "__half": 2, "__nv_bfloat16": 2}
_BYTES |= {"float2": 8, "float4": 16, "int2": 8, "int4": 16, "__half2": 4, "__nv_bfloat162": 4}
_FUNCTIONS = {"min": "min", "max": "max", "abs": "abs", "fminf": "min", "fmaxf": "max", "fabsf": "abs", "fabs": "abs"}
_FUNCTIONS |= {name: f"math.{name.rstrip('f')}" for name in ("sqrtf", "expf", "logf", "log2f", "powf")}
_FUNCTIONS |= {name: f"math.{name}" for name in ("sqrt", "ceil", "exp", "log", "log2", "pow")}
_FUNCTIONS |= {"ceilf": "math.ceil", "floorf": "math.floor", "floor": "math.floor"}
_WORDS = {"&&": "and", "||": "or"}
_PLAIN = ("+", "-", "*", "%", "<", ">", "<=", ">=", "==", "!=", "<<", ">>", "&", "|", "^")
_AXES = {"x": 0, "y": 1, "z": 2}
RESERVED = frozenset({"run", "inputs", "axes", "math", "launch", "min", "max", "abs", "int", "float"})


def refuse(node: Node, why: str) -> SourceError:
    """The refusal of a host statement or expression, at its line and column."""
    return SourceError(node.tree.path, node.line, node.column, why)


def python_name(name: str) -> str:
    """A C++ name as a Python name that shadows nothing of a plan."""
    return f"{name}_" if keyword.iskeyword(name) or name in RESERVED else name


def size_of(type_name: str, node: Node) -> int:
    """Bytes of a scalar or vector type."""
    name = canonical(type_name)
    if name not in _BYTES:
        raise refuse(node, f"the size of '{type_name}' is not known: use a scalar type")
    return _BYTES[name]


def expression(node: Node) -> str:
    """A host expression in Python. Integer division rounds down (sizes are not negative). Raises SourceError for what a plan can't say."""
    translate = _KINDS.get(node.kind)
    if translate is None:
        raise refuse(node, f"can't translate '{_brief(node)}' into a launch plan")
    return translate(node)


def number_text(text: str) -> str:
    """A C++ number in Python's spelling."""
    text = text.replace("'", "_")
    if text[:2].lower() == "0x":
        return re.sub(r"[uUlL]+$", "", text)
    return re.sub(r"[uUlLfF]+$", "", text)


def _brief(node: Node) -> str:
    text = " ".join(node.text.split())
    return text if len(text) <= 50 else f"{text[:47]}..."


def _binary(node: Node) -> str:
    left, right = operands(node)
    sign = operator(node)
    kind = expression_type(left)
    if sign in ("+", "-") and kind is not None and kind.element is not None:
        if sign == "-":
            raise refuse(node, "can't move a pointer back in a launch plan")
        return f"{expression(left)}.offset({expression(right)})"
    if sign == "/":
        found = expression_type(node)
        return f"({expression(left)} {'/' if found is not None and found.floating else '//'} {expression(right)})"
    if sign in _WORDS or sign in _PLAIN:
        return f"({expression(left)} {_WORDS.get(sign, sign)} {expression(right)})"
    raise refuse(node, f"operator '{sign}' has no counterpart in a launch plan")


def _unary(node: Node) -> str:
    argument, sign = node.field("argument"), operator(node)
    if argument is None:
        raise refuse(node, f"can't translate '{_brief(node)}' into a launch plan")
    if sign == "!":
        return f"(not {expression(argument)})"
    if sign in ("-", "+", "~"):
        return f"({sign}{expression(argument)})"
    indices = argument.field("indices")
    base = argument.field("argument")
    if sign == "&" and argument.kind == "subscript_expression" and indices is not None and base is not None:
        return f"{expression(base)}.offset({expression(indices.named_children[0])})"
    raise refuse(node, f"'{_brief(node)}' would read device memory on the host")


def _cast(node: Node) -> str:
    written, value = node.field("type"), node.field("value")
    if written is None or value is None:
        raise refuse(node, f"can't translate '{_brief(node)}' into a launch plan")
    return _converted(written.text, value)


def _converted(type_name: str, value: Node) -> str:
    if "*" in type_name:
        return expression(value)
    name = canonical(type_name)
    found = expression_type(value)
    if name in ("float", "double"):
        return f"float({expression(value)})"
    return expression(value) if found is not None and found.integral else f"int({expression(value)})"


def _call(node: Node) -> str:
    function, given, name = node.field("function"), arguments(node), callee(node)
    if function is not None and function.kind == "template_function" and name.endswith("_cast"):
        return _converted(function.find("type_descriptor")[0].text, given[0])
    if function is not None and function.kind == "primitive_type":
        return _converted(function.text, given[0])
    if name == "dim3":
        return dim3(given)
    if name in ("min", "max") or name in _FUNCTIONS:
        return f"{_FUNCTIONS[name]}({', '.join(expression(argument) for argument in given)})"
    if name.startswith("cuda"):
        raise refuse(node, f"the value of {name} is not known to a launch plan")
    if not name:
        raise refuse(node, f"can't translate '{_brief(node)}' into a launch plan")
    return f"{python_name(name)}({', '.join(expression(argument) for argument in given)})"


def dim3(sizes: list[Node]) -> str:
    """A `dim3` as a tuple of three; sizes left out are 1."""
    return f"({', '.join([*(expression(size) for size in sizes), '1', '1'][:3])})"


def _field(node: Node) -> str:
    base, name = node.field("argument"), node.field("field")
    if base is None or name is None or name.text not in _AXES:
        raise refuse(node, f"'{_brief(node)}' is not known to a launch plan")
    return f"{expression(base)}[{_AXES[name.text]}]"


def _choice(node: Node) -> str:
    condition, yes, no = (node.field(name) for name in ("condition", "consequence", "alternative"))
    if condition is None or yes is None or no is None:
        raise refuse(node, f"can't translate '{_brief(node)}' into a launch plan")
    return f"({expression(yes)} if {expression(condition)} else {expression(no)})"


def _sizeof(node: Node) -> str:
    written = node.field("type")
    if written is not None:
        return str(size_of(written.text, node))
    value = node.field("value") or node.named_children[0]
    inner = value.named_children[0] if value.kind == "parenthesized_expression" else value
    found = expression_type(inner)
    if found is not None and found.scalar:
        return str(size_of(found.base, node))
    return str(size_of(inner.text, node))


_KINDS = {
    "number_literal": lambda node: number_text(node.text),
    "identifier": lambda node: python_name(node.text),
    "true": lambda _: "True",
    "false": lambda _: "False",
    "null": lambda _: "None",
    "parenthesized_expression": lambda node: expression(node.named_children[0]),
    "binary_expression": _binary,
    "unary_expression": _unary,
    "pointer_expression": _unary,
    "cast_expression": _cast,
    "call_expression": _call,
    "field_expression": _field,
    "conditional_expression": _choice,
    "sizeof_expression": _sizeof,
}
