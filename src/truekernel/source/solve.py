"""A host function that launches kernels, `solve(...)`, as a launch plan."""

from __future__ import annotations

import re
from collections.abc import Iterator

from truekernel.errors import BadInputError
from truekernel.model import ITEM_BYTES, Problem
from truekernel.source.c_types import canonical
from truekernel.source.deep import deep
from truekernel.source.device import host_functions
from truekernel.source.host_expressions import dim3, expression, python_name, refuse
from truekernel.source.host_macros import definitions
from truekernel.source.query import arguments, bare, callee, operands, operator
from truekernel.source.signatures import Parameter, parameters
from truekernel.source.tree import Node, parse_cuda
from truekernel.source.types import declarator_parts, declared_type, type_of

_DTYPES = {
    "float": "float32",
    "double": "float64",
    "__half": "float16",
    "__nv_bfloat16": "bfloat16",
    "int": "int32",
    "unsigned int": "int32",
    "long long": "int64",
    "unsigned long long": "int64",
    "unsigned char": "uint8",
}
_WITHOUT_EFFECT = re.compile(
    r"cuda(?:Free(?:Async|Host)?|DeviceSynchronize|ThreadSynchronize|StreamSynchronize|GetLastError|PeekAtLastError|FuncSetAttribute"
    r"|FuncSetCacheConfig|Stream(?:Create|Destroy)\w*|Event\w+|SetDevice|DeviceSetLimit|ProfilerSt\w+)|f?printf|assert|puts|fflush"
)
_CHECK = re.compile(r"\w*(?:CHECK|check|CUDA|SAFE|gpuErr)\w*")
_CALLS = {"sqrt": "math.sqrt", "min": "min", "max": "max"}
_IGNORED_TYPES = re.compile(r"cudaError_t|cudaStream_t|cudaEvent_t|cudaError")


@deep
def translate_solve(text: str, problem: Problem | None = None, path: str = "<text>", *, name: str = "solve") -> str:
    """Translate the host function `name` of a CUDA file into the text of a launch plan for `problem`.

    Pointers to const are the problem's tensors, other pointers its outputs (or tensors that it mutates), scalars its axes and constants:
    by name first, whatever the case of the letters, then in order. Understood: `dim3`, integer arithmetic, helper functions and
    macros of one expression, `<<<grid, block, shared, stream>>>`, cudaMalloc and cudaFree of temporaries, cudaMemset to zero of a buffer that
    no kernel has used, swapped pointers, `if`, `for` and `while` around launches. Raises SourceError with the line of anything
    else, BadInputError when there is no such function or no problem.
    """
    if problem is None:
        raise BadInputError(f"{path}: name the problem that {name}() solves, so that its parameters mean something")
    tree = parse_cuda(text, path)
    functions = host_functions(tree)
    if name not in functions:
        raise BadInputError(f"{path}: no host function {name}(...): write one, or a launch plan next to the file")
    solve = functions[name]
    return "\n".join(_Translation(solve, problem).lines()) + "\n"


class _Translation:
    """One host function on its way to Python. `_used`: buffers that a kernel may have written, by C++ name."""

    def __init__(self, solve: Node, problem: Problem) -> None:
        self._solve = solve
        self._problem = problem
        self._used: set[str] = set()
        self._outputs: dict[str, str] = {}
        self._loops = 0

    def lines(self) -> list[str]:
        """The lines of the plan file."""
        body = self._solve.field("body")
        assert body is not None
        head = list(self._parameters())
        statements = list(self._block(body))
        returned = ", ".join(self._outputs.values())
        constants = definitions(self._solve.tree)
        return [
            f'"""Launch plan made of {self._solve.tree.path.rsplit("/", 1)[-1]}, line {self._solve.line}."""',
            "",
            "import math",
            "",
            f"PROBLEM = {self._problem.name!r}",
            "TRAITS: set[str] = set()",
            "",
            *constants,
            "",
            "def launch(run, inputs, axes):",
            *(f"    {line}" for line in [*head, *statements, f"return {returned}"]),
        ]

    def _parameters(self) -> Iterator[str]:
        problem, given = self._problem, parameters(self._solve)
        pointers = [p for p in given if p.pointer]
        mutated = {n.lower() for n in problem.mutates}
        tensors = [t.name for t in problem.tensors]
        read = [p for p in pointers if p.const or p.name.lower() in mutated]
        for parameter, tensor in self._paired(read, tensors, "tensor"):
            yield f"{python_name(parameter.name)} = inputs[{tensor!r}]"
            if not parameter.const:
                self._outputs[parameter.name] = python_name(parameter.name)
        free = [o.name for o in problem.outputs][len(self._outputs) :]
        shapes = {o.name: (o.shape, o.dtype) for o in problem.outputs}
        for parameter, output in self._paired([p for p in pointers if p not in read], free, "output", exact=True):
            shape, dtype = shapes[output]
            lengths = ", ".join(_length(entry) for entry in shape)
            yield f"{python_name(parameter.name)} = run.empty(({lengths}{',' if len(shape) == 1 else ''}), {dtype!r})"
            self._outputs[parameter.name] = python_name(parameter.name)
        scalars = [p for p in given if not p.pointer and not _IGNORED_TYPES.search(p.ctype)]
        for parameter, axis in self._paired(scalars, [*problem.constants, *problem.axes], "axis or constant"):
            value = repr(problem.constants[axis]) if axis in problem.constants else f"axes[{axis!r}]"
            yield f"{python_name(parameter.name)} = {value}"

    def _paired(
        self, given: list[Parameter], wanted: list[str], what: str, *, exact: bool = False
    ) -> list[tuple[Parameter, str]]:
        """Each parameter with what it stands for, by name first, the others in order; scalars must not guess."""
        names = {name.lower(): name for name in wanted}
        found = {p.name: names[p.name.lower()] for p in given if p.name.lower() in names}
        rest = [p for p in given if p.name not in found]
        left = [name for name in wanted if name not in found.values()]
        if what.startswith("axis") and rest and len(rest) != len(left):
            raise refuse(
                self._solve,
                f"parameter '{rest[0].name}' is no {what} of '{self._problem.name}' ({', '.join(wanted)}): rename it",
            )
        if len(rest) > len(left) or (exact and len(rest) != len(left)):
            missing = f"{len(given)} parameters for {len(wanted)} of them ({', '.join(wanted)})"
            raise refuse(self._solve, f"each {what} of '{self._problem.name}' needs one pointer: {missing}")
        found |= {p.name: name for p, name in zip(rest, left, strict=False)}
        return [(p, found[p.name]) for p in given]

    def _block(self, node: Node) -> Iterator[str]:
        statements = node.named_children if node.kind == "compound_statement" else [node]
        made = [line for statement in statements for line in self._statement(statement)]
        yield from made or ["pass"]

    def _statement(self, node: Node) -> Iterator[str]:
        if node.kind == "compound_statement":
            yield from self._block(node)
        elif node.kind == "declaration":
            yield from self._declaration(node)
        elif node.kind == "expression_statement":
            for inner in node.named_children:
                yield from self._effect(inner)
        elif node.kind == "if_statement":
            yield from self._if(node)
        elif node.kind in ("for_statement", "while_statement"):
            yield from self._loop(node)
        elif node.kind == "return_statement" and not node.named_children:
            yield f"return {', '.join(self._outputs.values())}"
        elif not node.kind.startswith("preproc") and node.kind not in (
            "comment",
            ";",
            "alias_declaration",
            "using_declaration",
        ):
            raise refuse(node, f"a launch plan has no '{node.kind.replace('_', ' ')}': write the plan by hand")

    def _declaration(self, node: Node) -> Iterator[str]:
        base = type_of(node)
        if base is None or _IGNORED_TYPES.search(base.base):
            return
        for declarator in node.children:
            if declarator.field_name != "declarator":
                continue
            if declarator.kind == "function_declarator":
                yield from self._vexing(declarator, node)
                continue
            name, _, extents = declarator_parts(declarator)
            value = declarator.field("value")
            if extents:
                raise refuse(node, f"array '{name}' on the host has no counterpart in a launch plan")
            if value is None:
                continue
            if value.kind in ("argument_list", "initializer_list"):
                given = value.named_children
                yield f"{python_name(name)} = {dim3(given) if base.base == 'dim3' else expression(given[0])}"
            elif base.base == "dim3" and callee(value) != "dim3" and value.kind != "identifier":
                yield f"{python_name(name)} = {dim3([value])}"
            else:
                yield f"{python_name(name)} = {expression(value)}"

    def _vexing(self, declarator: Node, node: Node) -> Iterator[str]:
        """`dim3 block(threads);` reads as a function declaration to a parser without types."""
        base = type_of(node)
        listed, name = declarator.field("parameters"), declarator.field("declarator")
        if base is None or base.base != "dim3" or listed is None or name is None:
            raise refuse(node, "a launch plan declares no functions")
        sizes = [python_name(parameter.text) for parameter in listed.named_children]
        yield f"{python_name(name.text)} = ({', '.join([*sizes, '1', '1'][:3])})"

    def _effect(self, node: Node) -> Iterator[str]:
        node = bare(node)
        if node.kind == "assignment_expression":
            left, right = operands(node)
            if left.kind == "identifier" and not _is_error(left):
                sign = "//=" if operator(node) == "/=" else operator(node)
                yield f"{python_name(left.text)} {sign} {expression(right)}"
                return
            if left.kind == "identifier":
                yield from self._effect(right)
                return
        elif node.kind == "update_expression":
            name = node.field("argument")
            if name is not None and name.kind == "identifier":
                yield f"{python_name(name.text)} {'+' if '++' in node.text else '-'}= 1"
                return
        elif node.kind == "comma_expression":
            for part in node.named_children:
                yield from self._effect(part)
            return
        elif node.kind == "call_expression":
            yield from self._call(node)
            return
        raise refuse(node, f"can't translate '{' '.join(node.text.split())[:50]}' into a launch plan")

    def _call(self, node: Node) -> Iterator[str]:
        name, given = callee(node), arguments(node)
        if node.child("kernel_call_syntax") is not None:
            yield self._launch(node)
        elif name in ("cudaMalloc", "cudaMallocAsync", "cudaMallocManaged"):
            yield self._allocate(node)
        elif name in ("cudaMemset", "cudaMemsetAsync"):
            yield self._clear(node)
        elif name == "swap" and len(given) == 2:
            first, second = (expression(argument) for argument in given)
            yield f"{first}, {second} = {second}, {first}"
        elif _WITHOUT_EFFECT.fullmatch(name):
            return
        elif _CHECK.fullmatch(name) and given and bare(given[0]).kind == "call_expression":
            yield from self._call(bare(given[0]))
        else:
            raise refuse(
                node, f"call of '{name or node.text[:40]}' has no counterpart in a launch plan: write the plan by hand"
            )

    def _launch(self, node: Node) -> str:
        function, syntax = node.field("function"), node.child("kernel_call_syntax")
        assert function is not None and syntax is not None
        sizes = syntax.named_children
        if len(sizes) < 2:
            raise refuse(node, "a launch needs a grid and a block")
        for argument in arguments(node):
            self._used |= {n.text for n in argument.find("identifier")}
        shared = f", shared={expression(sizes[2])}" if len(sizes) > 2 and sizes[2].text != "0" else ""
        passed = ", ".join(expression(argument) for argument in arguments(node))
        trailing = "," if len(arguments(node)) == 1 else ""
        return f"run.launch({_kernel_name(function)}, {expression(sizes[0])}, {expression(sizes[1])}, ({passed}{trailing}){shared})"

    def _allocate(self, node: Node) -> str:
        name = _pointer_name(arguments(node)[0])
        found = declared_type(name)
        dtype = _DTYPES.get(found.base) if found is not None else None
        if dtype is None:
            raise refuse(node, f"the element type of '{name.text}' is not one that a launch plan can allocate")
        return f"{python_name(name.text)} = run.empty(({expression(arguments(node)[1])}) // {ITEM_BYTES[dtype]}, {dtype!r})"

    def _clear(self, node: Node) -> str:
        name, value = bare(arguments(node)[0]), arguments(node)[1]
        if value.text != "0" or name.kind != "identifier":
            raise refuse(node, "a launch plan can only set whole buffers to zero")
        if self._loops or name.text in self._used:
            raise refuse(
                node, f"a launch plan can't clear '{name.text}' after a kernel has used it: use a kernel for that"
            )
        return f"{python_name(name.text)} = run.zeros({python_name(name.text)}.shape, {python_name(name.text)}.dtype)"

    def _if(self, node: Node) -> Iterator[str]:
        clause, yes, no = (node.field(name) for name in ("condition", "consequence", "alternative"))
        assert clause is not None and yes is not None
        condition = clause.field("value") or clause.named_children[0]
        if any(_is_error(name) or name.text.startswith("cuda") for name in condition.find("identifier")):
            return
        yield f"if {expression(condition)}:"
        yield from (f"    {line}" for line in self._block(yes))
        if no is not None:
            yield "else:"
            yield from (f"    {line}" for line in self._block(no.named_children[0]))

    def _loop(self, node: Node) -> Iterator[str]:
        first, condition = node.field("initializer"), node.field("condition")
        step, body = node.field("update"), node.field("body")
        if condition is None or body is None or body.find("continue_statement"):
            raise refuse(node, "a loop needs a condition and no 'continue' to be translated into a launch plan")
        if first is not None:
            yield from self._declaration(first) if first.kind == "declaration" else self._effect(first)
        if condition.kind == "condition_clause":
            condition = condition.field("value") or condition.named_children[0]
        self._loops += 1
        yield f"while {expression(condition)}:"
        yield from (f"    {line}" for line in self._block(body))
        if step is not None:
            yield from (f"    {line}" for line in self._effect(step))
        self._loops -= 1


def _is_error(name: Node) -> bool:
    found = declared_type(name)
    return found is not None and _IGNORED_TYPES.search(found.base) is not None


def _pointer_name(node: Node) -> Node:
    """`tmp` of `&tmp`, `(void**)&tmp` and `reinterpret_cast<void**>(&tmp)`."""
    names = node.find("identifier")
    if not names:
        raise refuse(node, "can't tell which pointer is allocated")
    return names[-1]


def _kernel_name(function: Node) -> str:
    """The kernel's name expression as Python text; names of the plan inside template arguments are filled in when it runs."""
    if function.kind == "identifier":
        return repr(function.text)
    name, given = function.field("name"), function.field("arguments")
    if function.kind != "template_function" or name is None or given is None:
        raise refuse(function, f"'{function.text}' is not a kernel's name")
    parts = []
    for argument in given.named_children:
        inner = argument.field("type") if argument.kind == "type_descriptor" else None
        word = inner.text if inner is not None else argument.text
        local = argument.find("identifier", "type_identifier")
        variable = next((n for n in local if _is_local(n)), None)
        parts.append(
            f"{{{python_name(word) if word.isidentifier() else expression(argument)}}}"
            if variable is not None
            else canonical(word)
        )
    text = f"{name.text}<{', '.join(parts)}>"
    return f"f{text!r}" if "{" in text else repr(text)


def _is_local(name: Node) -> bool:
    """Whether a name is a variable of the host function, which the device source does not know."""
    function = name.function
    declared = function.find("init_declarator") if function is not None else []
    return any(d.field("declarator") is not None and d.field("declarator").text == name.text for d in declared)  # type: ignore[union-attr]


def _length(entry: str | int) -> str:
    """An entry of a shape as an expression over `axes`."""
    if isinstance(entry, int):
        return str(entry)
    named = re.sub(r"[A-Za-z_]\w*", lambda match: _CALLS.get(match[0], f"axes[{match[0]!r}]"), entry)
    return re.sub(r"//?", "//", named)
