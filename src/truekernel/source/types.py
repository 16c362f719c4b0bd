"""Types of names and expressions, from the declarations in scope; None where they can't be told."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from truekernel.source.c_types import FLOATING, INTEGRAL, CType, canonical
from truekernel.source.query import arguments, bare, callee, operands, operator
from truekernel.source.tree import Node, Tree, function_name

_SCOPES = (
    "compound_statement",
    "for_statement",
    "for_range_loop",
    "if_statement",
    "while_statement",
    "lambda_expression",
    "function_definition",
    "template_declaration",
    "namespace_definition",
    "translation_unit",
)
_DECLARATIONS = ("declaration", "parameter_declaration", "optional_parameter_declaration", "for_range_loop")
_RANK: tuple[str, ...] = (
    "bool",
    "char",
    "signed char",
    "unsigned char",
    "short",
    "unsigned short",
    "int",
    "unsigned int",
    "long long",
)
_RANK += ("unsigned long long", "__nv_bfloat16", "__half", "float", "double")
_INT, _UINT, _FLOAT, _DOUBLE, _BOOL = (CType(name) for name in ("int", "unsigned int", "float", "double", "bool"))
_CONSTANTS = {
    "INFINITY": _FLOAT,
    "NAN": _FLOAT,
    "FLT_MAX": _FLOAT,
    "FLT_MIN": _FLOAT,
    "FLT_EPSILON": _FLOAT,
    "CUDART_INF_F": _FLOAT,
    "CUDART_NAN_F": _FLOAT,
    "HUGE_VALF": _FLOAT,
    "M_PI": _DOUBLE,
    "DBL_MAX": _DOUBLE,
    "INT_MAX": _INT,
    "INT_MIN": _INT,
    "UINT_MAX": _UINT,
    "warpSize": _INT,
}
_RESULTS = {
    "__float2half": "__half",
    "__float2half_rn": "__half",
    "__half2float": "float",
    "__float2bfloat16": "__nv_bfloat16",
    "__float2bfloat16_rn": "__nv_bfloat16",
    "__bfloat162float": "float",
    "__popc": "int",
    "__ffs": "int",
    "__clz": "int",
    "__float2int_rn": "int",
    "__float2int_rd": "int",
    "__float2int_rz": "int",
    "__int2float_rn": "float",
    "__uint2float_rn": "float",
    "__float_as_int": "int",
    "__float_as_uint": "unsigned int",
    "__int_as_float": "float",
    "__uint_as_float": "float",
    "__ballot_sync": "unsigned int",
    "__activemask": "unsigned int",
    "thread_rank": "unsigned int",
    "__fdividef": "float",
    "__saturatef": "float",
}
_SHUFFLES = ("__shfl_sync", "__shfl_down_sync", "__shfl_up_sync", "__shfl_xor_sync")
_OF_ARGUMENTS = frozenset(
    [
        "min",
        "max",
        "abs",
        "exp",
        "log",
        "sqrt",
        "rsqrt",
        "pow",
        "tanh",
        "sin",
        "cos",
        "floor",
        "ceil",
        "fma",
        "erf",
        "fabs",
        "fmin",
        "fmax",
        "shfl",
        "shfl_down",
        "shfl_xor",
        "shfl_up",
    ]
)
_FLOAT_CALL = re.compile(
    r"(?:__)?(?:f?(?:max|min|abs|ma|mod|dim)|exp|exp2|exp10|expm1|log|log2|log10|log1p|sqrt|rsqrt|cbrt|pow|tanh?|sinh?|cosh?|erfc?|floor"
    r"|ceil|round|rint|trunc|copysign|atan2?|asin|acos|nearbyint|norm|hypot|fadd|fsub|fmul|fdiv|frcp|fsqrt|fmaf?|normcdf)f?(?:_r[nzud])?"
)


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    type: CType | None
    declared: int
    start: int
    end: int
    value: Node | None = None


def declared_type(name: Node) -> CType | None:
    """The type with which an identifier was declared, from locals, parameters, shared arrays and namespace-scope variables.

    `auto` takes the type of its initialiser; aliases of the file are resolved. None for unknown names.
    """
    best: _Symbol | None = None
    for symbol in _table(name.tree).get(name.text, ()):
        inside = symbol.start <= name.start < symbol.end and symbol.declared <= name.end
        if inside and (best is None or symbol.start >= best.start):
            best = symbol
    if best is None:
        return _CONSTANTS.get(name.text)
    if best.type is not None and best.type.base == "auto" and best.value is not None and best.value.end < name.start:
        return expression_type(best.value)
    return best.type


def type_of(node: Node) -> CType | None:
    """The type that a `type_descriptor`, parameter or declaration names, without its declarator's pointers."""
    base = node.field("type")
    if base is None:
        return None
    words = [child.text for child in node.children if child.kind in ("type_qualifier", "storage_class_specifier")]
    named = _named_type(base.text, node.tree)
    const = "const" in words or "constexpr" in words or named.const
    return replace(named, const=const, shared="__shared__" in words)


def expression_type(node: Node) -> CType | None:
    """The type of an expression, by C's usual conversions; None where a part of it is unknown."""
    node = bare(node)
    known: dict[Node, CType | None] = node.tree.answers.setdefault("types", {})
    if node not in known:
        known[node] = None
        rule = _RULES.get(node.kind)
        try:
            known[node] = rule(node) if rule else None
        except RecursionError:
            del known[node]
            raise
    return known[node]


def is_integral(node: Node) -> bool:
    """Whether an expression is known to be one integer."""
    found = expression_type(node)
    return found is not None and found.integral


def declarator_parts(declarator: Node | None) -> tuple[str, int, tuple[str, ...]]:
    """Name, levels of pointer and array extents of a declarator ("" when it has no name)."""
    pointer = 0
    extents: list[str] = []
    while declarator is not None:
        if "pointer_declarator" in declarator.kind or "reference_declarator" in declarator.kind:
            pointer += declarator.child("*") is not None
        elif "array_declarator" in declarator.kind:
            size = declarator.field("size")
            extents.insert(0, size.text if size is not None else "")
        elif declarator.kind in ("identifier", "field_identifier"):
            return declarator.text, pointer, tuple(extents)
        elif "function_declarator" in declarator.kind:
            return "", pointer, tuple(extents)
        declarator = declarator.field("declarator") or declarator.child(
            "identifier", "field_identifier", "pointer_declarator", "array_declarator", "parenthesized_declarator"
        )
    return "", pointer, tuple(extents)


def _named_type(text: str, tree: Tree) -> CType:
    if "aliases" not in tree.answers:
        tree.answers["aliases"] = _find_aliases(tree)
    name = canonical(text)
    aliases: dict[str, CType] = tree.answers["aliases"]
    return aliases.get(name, CType(name))


def _find_aliases(tree: Tree) -> dict[str, CType]:
    found: dict[str, CType] = {}
    for node in tree.find("alias_declaration", "type_definition"):
        target = node.field("type")
        if node.kind == "alias_declaration":
            name = node.field("name")
            if name is not None and target is not None and target.field("type") is not None:
                _, pointer, extents = declarator_parts(target.field("declarator"))
                found[name.text] = CType(canonical(target.field("type").text), pointer, extents)  # type: ignore[union-attr]
        else:
            declarator = node.field("declarator")
            if declarator is not None and target is not None and declarator.kind == "type_identifier":
                found[declarator.text] = CType(canonical(target.text))
    return found


def _table(tree: Tree) -> dict[str, list[_Symbol]]:
    if "symbols" not in tree.answers:
        table: dict[str, list[_Symbol]] = {}
        for node in tree.find(*_DECLARATIONS):
            for symbol in _declared(node):
                table.setdefault(symbol.name, []).append(symbol)
        tree.answers["symbols"] = table
    found: dict[str, list[_Symbol]] = tree.answers["symbols"]
    return found


def _declared(node: Node) -> list[_Symbol]:
    base = type_of(node)
    scope = node if node.kind == "for_range_loop" else node.enclosing(*_SCOPES)
    if base is None or scope is None:
        return []
    found = []
    for child in node.children:
        if child.field_name != "declarator":
            continue
        value = child.field("value") if child.kind == "init_declarator" else node.field("default_value")
        name, pointer, extents = declarator_parts(child)
        whole = replace(base, pointer=base.pointer + pointer, extents=extents + base.extents)
        if name:
            found.append(_Symbol(name, whole, child.start, scope.start, scope.end, value))
    return found


def _promoted(types: list[CType | None]) -> CType | None:
    known = [t for t in types if t is not None]
    if len(known) != len(types) or not known:
        return None
    for t in known:
        if not t.scalar:
            return replace(t, const=False)
    names = {t.base for t in known}
    if len(names) == 1 and (names <= FLOATING or not names <= INTEGRAL):
        return CType(known[0].base)
    if not names <= FLOATING | INTEGRAL:
        return None
    return CType(max(names | ({"int"} if names <= INTEGRAL else set()), key=_RANK.index))


def _number(node: Node) -> CType | None:
    text = node.text.lower()
    if not text.startswith("0x") and (text.endswith("f") or "." in text or "e" in text):
        return _FLOAT if text.endswith("f") else _DOUBLE
    size = "long long" if "l" in text.strip("0123456789xabcdef'") else "int"
    return CType(f"unsigned {size}" if "u" in text else size)


def _binary(node: Node) -> CType | None:
    left, right = operands(node)
    if operator(node) in ("<", ">", "<=", ">=", "==", "!=", "&&", "||"):
        return _BOOL
    if operator(node) in ("<<", ">>"):
        return _promoted([expression_type(left)])
    return _promoted([expression_type(left), expression_type(right)])


def _unary(node: Node) -> CType | None:
    argument = node.field("argument")
    if operator(node) == "!" or argument is None:
        return _BOOL
    found = expression_type(argument)
    if operator(node) == "*":
        return found.element if found else None
    if operator(node) == "&":
        return replace(found, pointer=found.pointer + 1) if found else None
    return _promoted([found])


def _field(node: Node) -> CType | None:
    base, name = node.field("argument"), node.field("field")
    if base is None or name is None:
        return None
    if base.text in ("threadIdx", "blockIdx", "blockDim", "gridDim"):
        return _UINT
    owner = expression_type(base)
    if owner is not None and operator(node) == "->":
        owner = owner.element
    if owner is None:
        return None
    if name.text in ("x", "y", "z", "w") and owner.component is not None:
        return owner.component
    for struct in node.tree.find("struct_specifier", "class_specifier"):
        title = struct.field("name")
        if title is None or title.text != owner.base:
            continue
        for member in struct.find("field_declaration"):
            for declarator in member.children:
                found, pointer, extents = declarator_parts(
                    declarator if declarator.field_name == "declarator" else None
                )
                base_type = type_of(member)
                if found == name.text and base_type is not None:
                    return replace(base_type, pointer=base_type.pointer + pointer, extents=extents)
    return None


def _cast(node: Node) -> CType | None:
    written = node.field("type")
    base = type_of(written) if written is not None else None
    if base is None or written is None:
        return None
    return replace(base, pointer=base.pointer + declarator_parts(written.field("declarator"))[1])


def _call(node: Node) -> CType | None:
    function, given, name = node.field("function"), arguments(node), callee(node)
    if function is not None and function.kind == "template_function" and name.endswith("_cast"):
        written = function.find("type_descriptor")
        base = type_of(written[0]) if written else None
        pointer = declarator_parts(written[0].field("declarator"))[1] if written else 0
        return replace(base, pointer=base.pointer + pointer) if base else None
    if function is not None and function.kind == "primitive_type":
        return _named_type(function.text, node.tree)
    if name == "__ldg" and given:
        found = expression_type(given[0])
        return found.element if found else None
    if name in _SHUFFLES and len(given) > 1:
        return expression_type(given[1])
    if name in _RESULTS:
        return CType(_RESULTS[name])
    if canonical(name) in FLOATING | INTEGRAL or CType(canonical(name)).component:
        return CType(canonical(name))
    if name.startswith("make_"):
        return CType(canonical(name.removeprefix("make_")))
    for definition in node.tree.functions:
        if function_name(definition) == name:
            base = type_of(definition)
            head = definition.field("declarator")
            return (
                replace(base, pointer=base.pointer + (head is not None and head.kind == "pointer_declarator"))
                if base
                else None
            )
    if name in _OF_ARGUMENTS and given:
        return _promoted([expression_type(argument) for argument in given])
    return _FLOAT if _FLOAT_CALL.fullmatch(name) and (name.endswith("f") or name.startswith("__")) else None


def _literal_type(node: Node) -> CType | None:
    written = node.field("type")
    return _named_type(written.text, node.tree) if written is not None else None


def _first(node: Node) -> CType | None:
    left = node.field("left") or node.field("argument")
    return expression_type(left) if left is not None else None


def _subscript(node: Node) -> CType | None:
    found = _first(node)
    return found.element if found else None


def _choice(node: Node) -> CType | None:
    branches = [node.field("consequence"), node.field("alternative")]
    return _promoted([expression_type(branch) if branch is not None else None for branch in branches])


def _define(node: Node) -> CType | None:
    """A name without a declaration may be a macro for a number."""
    found = declared_type(node)
    if found is not None:
        return found
    for definition in node.tree.find("preproc_def"):
        name, value = definition.field("name"), definition.field("value")
        if name is not None and value is not None and name.text == node.text:
            number = re.fullmatch(r"\(?\s*-?\s*([0-9][\w.+-]*)\s*\)?", value.text.split("//")[0].strip())
            if number is None:
                return None
            real = re.fullmatch(r"0x\w+|\d+[uUlL]*", number[1]) is None
            return (_FLOAT if number[1][-1] in "fF" else _DOUBLE) if real else _INT
    return None


_RULES = {
    "identifier": _define,
    "number_literal": _number,
    "true": lambda _: _BOOL,
    "false": lambda _: _BOOL,
    "binary_expression": _binary,
    "unary_expression": _unary,
    "pointer_expression": _unary,
    "update_expression": _first,
    "assignment_expression": _first,
    "subscript_expression": _subscript,
    "field_expression": _field,
    "cast_expression": _cast,
    "call_expression": _call,
    "conditional_expression": _choice,
    "compound_literal_expression": _literal_type,
}
