"""One call made again: with other tensors, with another function. What oracles for a single call have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from truekernel.fuzz.libraries.torch_calls import made, tensors_of
from truekernel.fuzz.libraries.torch_operators import TRAITS, base_name, resolve
from truekernel.fuzz.libraries.torch_script import call_text, expression, tensor_names
from truekernel.fuzz.libraries.torch_values import make
from truekernel.fuzz.records import Call, Operator, Outcome, Reference, Shared, TensorValue, TestCase

SEED = 20210
UNDETERMINED = re.compile(
    r"rand|dropout|bernoulli|multinomial|empty|resize|^set|rrelu|poisson|normal_?$|uniform|exponential|geometric|cauchy|log_normal|sobol|shuffle|gumbel|fractional_max|"
    r"binomial|dirichlet|_standard_gamma|lowrank|lobpcg|storage|data_ptr|^view_as_|as_subclass|_conj|_neg_view|is_set_to|_copy_from|^detach|^alias$|resolve_|hash_tensor|result_type"
)
"""Operators whose result chance, memory that nobody wrote, or the identity of their argument decides."""
AMBIGUOUS = re.compile(
    r"eig$|eigvals$|eigh$|svd|(^|_)qr$|geqrf|lobpcg|lowrank|^_?linalg_lu|(^|_)lu(_factor|_factor_ex)?$|ldl|lstsq|arg(sort|max|min)|^a?min$|^a?max$|(^|_)sort|topk|median|mode|kthvalue|unique|"
    r"max_pool|cummax|cummin|aminmax|^hist"
)
"""Operators with several right answers: eigenvectors up to sign and order, pivots, indices of equal elements. Two runs of other roundings may give different ones."""
LAYOUT_MATTERS = re.compile(
    r"stride|contiguous|storage|^view|as_strided|memory_format|^to$|clone|_like|new_|dim_order|real$|imag|is_|unsafe|expand|reshape|data$|_inverse$|resize"
)
"""Operators that are about where elements lie."""


def tensors(call: Call) -> list[int]:
    """Leaves that are tensors."""
    return [slot for slot, leaf in enumerate(call.leaves()) if isinstance(leaf, TensorValue)]


def is_single(case: TestCase) -> bool:
    """One call, once, of tensors that are not aliased, at least one."""
    call = case.calls[0]
    leaves = call.leaves()
    return (
        len(case.calls) == 1
        and call.repeat == 1
        and not any(isinstance(leaf, Reference | Shared) for leaf in leaves)
        and any(isinstance(leaf, TensorValue) for leaf in leaves)
    )


def has_one_answer(operator: Operator) -> bool:
    """Whether two honest algorithms must agree on an operator's result."""
    return is_determined(operator) and not AMBIGUOUS.search(base_name(operator.name))


def is_determined(operator: Operator) -> bool:
    """Whether the values of its arguments determine an operator's result."""
    random = bool(operator.features[-len(TRAITS) + TRAITS.index("random")]) if operator.features else False
    return not random and operator.family != "random" and not UNDETERMINED.search(base_name(operator.name))


def addresses_storage(operator: Operator) -> bool:
    """Whether an operator's offset counts from the start of its argument's storage: a copy has a storage of its own, and means something else by it."""
    return any(parameter.name == "storage_offset" for parameter in operator.parameters)


def mutates(operator: Operator) -> bool:
    """Whether an operator writes into an argument, as far as name and schema tell."""
    return (
        base_name(operator.name).endswith("_")
        or "!)" in operator.schema.split("->")[0]
        or base_name(operator.name).startswith("__i")
    )


def outputs(result: Any) -> list[torch.Tensor]:
    """Tensors that a call returned; numbers as tensors of no dimension."""
    if isinstance(result, bool | int | float | complex):
        return [torch.tensor(result)]
    return [part.detach() for part in tensors_of(result)]


def run(
    call: Call,
    *,
    maker: Callable[[TensorValue], torch.Tensor] = make,
    change: Callable[[list[Any]], list[Any]] | None = None,
    function: Callable[..., Any] | None = None,
) -> Any:
    """What the call returns. `maker` makes tensors; `change`: leaves to hand over in place of those made; `function`: called in place of the operator."""
    arguments, keywords, leaves = made(call, maker=maker)
    if change is not None:
        arguments, keywords = with_values(call, change(leaves))
    torch.manual_seed(SEED)
    return (function or resolve(call.operator))(*arguments, **keywords)


def with_values(call: Call, leaves: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(arguments, keywords) of a call with made leaves."""
    rest = iter(leaves)

    def build(value: Any) -> Any:
        return [build(part) for part in value] if isinstance(value, tuple) else next(rest)

    arguments = tuple(build(value) for value in call.arguments)
    return arguments, {name: build(value) for name, value in call.keywords}


def same_bits(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    """Whether results agree in number, shape, dtype and every bit; NaNs agree with NaNs."""
    if len(one) != len(other):
        return False
    for a, b in zip(one, other, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if not torch.equal(a, b) and not ((a == b) | (a.isnan() & b.isnan())).all():
            return False
    return True


def assignments(call: Call, suffix: str = "", change: Callable[[TensorValue], TensorValue] | None = None) -> list[str]:
    """Lines that make the tensors of a call; names end with `suffix`."""
    names = tensor_names(call, 0)
    lines = []
    for slot, leaf in enumerate(call.leaves()):
        if isinstance(leaf, TensorValue):
            lines.append(f"{names[slot]}{suffix} = {expression(change(leaf) if change else leaf)}")
    return lines


def text_of(call: Call, suffix: str = "", function: str = "") -> str:
    """The call as an expression over the names of `assignments`."""
    return call_text(call, {slot: name + suffix for slot, name in tensor_names(call, 0).items()}, function)


def mismatch(oracle: str, message: str, **figures: float) -> Outcome:
    """A mismatch that an oracle found."""
    return Outcome("mismatch", oracle, message=message[:1500], location=message.split(":", 1)[0][:80], figures=figures)
