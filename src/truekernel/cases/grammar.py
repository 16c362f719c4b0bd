"""Recipe strings: `base[*factor][+offset][&parameters][@place]`, as in "uniform", "uniform*-1", "normal*0.01", "normal+1000", "normal&parameters".

The base is a name of `recipes()` or "official", which draws every tensor from the problem's own recipe. `&parameters` draws the parameters from
the base as well, times their own scale; without it they are drawn officially. `@k` draws the k-th floating-point tensor alone from the base, inputs first and then
parameters, counted from 0. Of the first two, which most problems multiply, the other is drawn officially; all else is zero, since whatever is added would hide what is small.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from truekernel.cases.recipes import recipes
from truekernel.errors import BadInputError, UnknownNameError

OFFICIAL = "official"
TINY = 1e-18
"""Products of two numbers from here on down come near float32's least normal number, 1.2e-38."""
NUMBER = r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
PATTERN = re.compile(
    rf"(?P<base>[a-z_]+)(?:\*(?P<factor>{NUMBER}))?(?P<offset>\+{NUMBER})?(?P<parameters>&parameters)?(?:@(?P<place>\d+))?"
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A parsed recipe string: values = base * factor + offset."""

    base: str
    factor: float = 1.0
    offset: float = 0.0
    parameters: bool = False
    place: int | None = None

    @property
    def tiny(self) -> bool:
        """Whether values, or products of two of them, may be subnormal in float32."""
        return self.base in ("subnormal", "decades") or abs(self.factor) <= TINY

    def __str__(self) -> str:
        factor = f"*{self.factor!r}" if self.factor != 1 else ""
        offset = f"+{self.offset!r}" if self.offset != 0 else ""
        place = "" if self.place is None else f"@{self.place}"
        return f"{self.base}{factor}{offset}{'&parameters' if self.parameters else ''}{place}"


def parse_recipe(text: str) -> Recipe:
    """The recipe that a string names. Raises BadInputError when it doesn't have the form, UnknownNameError when there is no such base."""
    match = PATTERN.fullmatch(text)
    if match is None:
        raise BadInputError(
            f"recipe '{text}' is not of the form base[*factor][+offset][&parameters][@place], e.g. 'normal*0.01' or 'uniform+1000'"
        )
    base = match["base"]
    if base != OFFICIAL and base not in recipes():
        raise UnknownNameError("value recipe", base, [OFFICIAL, *recipes()])
    factor = float(match["factor"]) if match["factor"] else 1.0
    offset = float(match["offset"][1:]) if match["offset"] else 0.0
    redraws = base != OFFICIAL and recipes()[base].redraws_parameters
    place = int(match["place"]) if match["place"] else None
    return Recipe(base, factor, offset, bool(match["parameters"]) or redraws, place)
