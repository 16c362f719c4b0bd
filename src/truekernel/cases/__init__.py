"""Value recipes and shapes: from a case to tensors."""

from truekernel.cases.grammar import Recipe, parse_recipe
from truekernel.cases.inputs import make_inputs
from truekernel.cases.recipes import ValueRecipe, recipes
from truekernel.cases.seeds import is_witness_seed, suite_seed, witness_seed
from truekernel.cases.shapes import combinations, is_legal, least, shapes, wide
from truekernel.cases.witness import witness_cases, witness_shapes

__all__ = [
    "Recipe",
    "ValueRecipe",
    "combinations",
    "is_legal",
    "is_witness_seed",
    "least",
    "make_inputs",
    "parse_recipe",
    "recipes",
    "shapes",
    "suite_seed",
    "wide",
    "witness_cases",
    "witness_seed",
    "witness_shapes",
]
