"""Arithmetic faults: an operator, a term, a factor or a constant is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.rule import Example, rule
from truekernel.source.edits import replace
from truekernel.source.tree import Tree


@rule(
    "swap-add-sub",
    "arithmetic",
    source="operator catalogue A01; MUTGPU's math operator, ICST 2020",
    examples=(
        Example("y[0] = x[0] + w[0];", "y[0] = x[0] - w[0];"),
        Example("y[0] = x[0] * w[0];", None),
    ),
)
def swap_add_sub(tree: Tree) -> Iterator[Edit]:
    """A sum becomes a difference, or a difference a sum."""
    for node in tree.device("binary_expression"):
        token = node.field("operator")
        if token is not None and token.text in "+-":
            yield replace(token, "-" if token.text == "+" else "+")
