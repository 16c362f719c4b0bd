"""A case of torch as lines of a script that needs nothing but torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from truekernel.fuzz.libraries.torch_values import geometry
from truekernel.fuzz.records import Call, Leaf, Named, Reference, Shared, TensorValue, TestCase, Value

_MOST_DATA = 64


def script_of(case: TestCase) -> list[str]:
    """Lines that make the calls; tensors of call number i are ti_j, results r0, r1, ..."""
    lines: list[str] = []
    for number, call in enumerate(case.calls):
        names = tensor_names(call, number)
        lines += [
            f"{names[slot]} = {expression(leaf)}"
            for slot, leaf in enumerate(call.leaves())
            if isinstance(leaf, TensorValue)
        ]
        line = f"r{number} = {call_text(call, names)}"
        lines.append(line if call.repeat == 1 else f"for _ in range({call.repeat}): {line}")
    return lines


def tensor_names(call: Call, number: int) -> dict[int, str]:
    """Names of a call's tensors by leaf: x, y, ... for the first call, then with its number."""
    letters = "xyzwuvabcdefghijklmnopqs"
    slots = [slot for slot, leaf in enumerate(call.leaves()) if isinstance(leaf, TensorValue)]
    return {slot: letters[place % len(letters)] + (str(number) if number else "") for place, slot in enumerate(slots)}


def call_text(call: Call, names: dict[int, str], function: str = "") -> str:
    """The call as an expression; methods are called on their first argument. `function`: called in place of the operator."""
    counter = iter(range(len(call.leaves())))

    def text(value: Value) -> str:
        if isinstance(value, tuple):
            return "[" + ", ".join(text(part) for part in value) + "]"
        slot = next(counter)
        return _leaf_text(value, names.get(slot, ""), names)

    arguments = [text(value) for value in call.arguments]
    keywords = [f"{name}={text(value)}" for name, value in call.keywords]
    target = function or call.operator
    if target.startswith("torch.Tensor.") and arguments:
        target, arguments = f"{arguments[0]}.{target.removeprefix('torch.Tensor.')}", arguments[1:]
    return f"{target}({', '.join([*arguments, *keywords])})"


def _leaf_text(leaf: Leaf, own: str, names: dict[int, str]) -> str:
    if isinstance(leaf, TensorValue):
        return own
    if isinstance(leaf, Reference):
        return f"r{leaf.call}" if leaf.output == 0 else f"r{leaf.call}[{leaf.output}]"
    if isinstance(leaf, Shared):
        return names.get(leaf.leaf, "x")
    if isinstance(leaf, Named):
        return {"device": f"torch.device({leaf.name!r})", "complex": leaf.name}.get(leaf.kind, f"torch.{leaf.name}")
    return _number(leaf) if isinstance(leaf, float) else repr(leaf)


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else f"float('{value!r}')"


def expression(value: TensorValue) -> str:
    """An expression that makes the tensor: bit for bit where its values are written out, alike where a recipe stays."""
    strides, offset, elements = geometry(value.shape, value.layout)
    shape, dtype = _tuple(value.shape), f"torch.{value.dtype}"
    plain = value.layout == "contiguous" or math.prod(value.shape) == 0
    if value.data is not None and math.prod(value.shape) <= _MOST_DATA:
        base = _literal(value)
    else:
        base = _recipe(value)
    gradient = ".requires_grad_()" if value.gradient else ""
    if plain and value.layout != "huge_stride":
        return f"{base}{gradient}"
    if value.layout in ("expanded", "overlapping"):
        flat = (
            _recipe(TensorValue((elements,), value.dtype, values=value.values, seed=value.seed, bound=value.bound))
            if value.data is None
            else _literal(value, elements)
        )
        return f"{flat}.as_strided({shape}, {_tuple(strides)}){gradient}"
    if value.layout == "transposed":
        axes = _tuple(tuple(reversed(range(len(value.shape)))))
        return f"{base}.permute({axes}).contiguous().permute({axes}){gradient}"
    if value.layout == "channels_last":
        form = "channels_last" if len(value.shape) == 4 else "channels_last_3d"
        return f"{base}.to(memory_format=torch.{form}){gradient}" if len(value.shape) in (4, 5) else f"{base}{gradient}"
    empty = f"torch.zeros({elements}, dtype={dtype}).as_strided({shape}, {_tuple(strides)}, {offset})"
    return f"{empty}.copy_({base}){gradient}"


def _tuple(values: Sequence[int]) -> str:
    return f"({', '.join(map(str, values))}{',' if len(values) == 1 else ''})"


def _literal(value: TensorValue, count: int | None = None) -> str:
    assert value.data is not None
    wanted = math.prod(value.shape) if count is None else count
    data = [value.data[place % len(value.data)] for place in range(wanted)] if value.data else []
    parts = [
        part if isinstance(part, str) else _number(part) if isinstance(part, float) else repr(part) for part in data
    ]
    shape = value.shape if count is None else (count,)
    if shape == () and parts:
        return f"torch.tensor({parts[0]}, dtype=torch.{value.dtype})"
    if len(set(parts)) == 1 and parts:
        return f"torch.full({_tuple(shape)}, {parts[0]}, dtype=torch.{value.dtype})"
    text = f"torch.tensor([{', '.join(parts)}], dtype=torch.{value.dtype})"
    return text if len(shape) == 1 else f"{text}.reshape({_tuple(shape)})"


def _recipe(value: TensorValue) -> str:
    """Code for a recipe; what needs bits to agree has its values written out first (`Torch.literal`)."""
    shape, dtype = _tuple(value.shape), f"torch.{value.dtype}"
    generator = f"generator=torch.Generator().manual_seed({value.seed})"
    simple: dict[str, Any] = {
        "zeros": f"torch.zeros({shape}, dtype={dtype})",
        "ones": f"torch.ones({shape}, dtype={dtype})",
    }
    if math.prod(value.shape) == 0:
        return simple["zeros"]
    if value.values in simple:
        return str(simple[value.values])
    if value.dtype == "bool":
        return f"torch.randint(0, 2, {shape}, {generator}, dtype=torch.uint8).to(torch.bool)"
    if "int" in value.dtype:
        return f"torch.randint(0, {max(value.bound, 1) if value.values == 'index' else 10}, {shape}, {generator}).to({dtype})"
    normal = f"torch.randn({shape}, {generator}{', dtype=torch.float64' if value.dtype == 'float64' else ''})"
    forms = {
        "unit": f"torch.special.ndtr({normal})",
        "positive": f"({normal}.abs() + 0.0625)",
        "small_integers": f"({normal} * 3).round()",
        "ties": f"{normal}.sign()",
        "negative": f"(-{normal}.abs() - 0.0625)",
        "large": f"({normal} * 1000.0)",
        "tiny": f"({normal} * 1e-4)",
        "nan": f"({normal} > 0.5).float() / ({normal} > 0.5).float()",
        "infinite": f"({normal} / ({normal}.abs() < 0.5).float())",
        "extreme": f"({normal}.sign().double() * torch.finfo({dtype}).max)",
        "subnormal": f"({normal}.double() * torch.finfo({dtype}).smallest_normal / 8)",
    }
    body = forms.get(value.values, normal)
    return body if value.dtype == "float32" and value.values not in ("extreme", "subnormal") else f"{body}.to({dtype})"
