"""Value recipes and shapes: from a case to tensors."""

from truekernel.cases.expressions import evaluate, lengths, shape_of
from truekernel.cases.grammar import Recipe, parse_recipe
from truekernel.cases.inputs import make_inputs
from truekernel.cases.recipes import ValueRecipe, recipes
from truekernel.cases.shapes import combinations, is_legal, shapes

__all__ = [
    "Recipe",
    "ValueRecipe",
    "combinations",
    "evaluate",
    "is_legal",
    "lengths",
    "make_inputs",
    "parse_recipe",
    "recipes",
    "shape_of",
    "shapes",
]
