"""Weights of a candidate: made as the reference makes them, draw for draw, so that one seed gives both the same."""

from __future__ import annotations

from dataclasses import dataclass

from truekernel.corpus.kernelbench import Adapted
from truekernel.errors import BadInputError
from truekernel.model import Axes, Problem
from truekernel.model.lengths import evaluate, lengths


@dataclass(frozen=True, slots=True)
class Weight:
    """One draw or filling. `name`: attribute that keeps it, empty where the generator only moves on; `place`: number among the problem's parameters, -1 then;
    `how`: method of an empty tensor that fills it."""

    name: str
    place: int
    shape: tuple[int, ...]
    how: str

    def statement(self) -> str:
        """The statement of the candidate's constructor."""
        made = f"torch.empty({self.shape!r}).{self.how}"
        return f"self.{self.name} = torch.nn.Parameter({made})" if self.name else made


def weights_of(problem: Problem, axes: Axes) -> list[Weight]:
    """As our own problem states them. Raises BadInputError for a recipe that PyTorch has no method for."""
    result = []
    for place, spec in enumerate(problem.parameters):
        scale = float(evaluate(spec.scale, axes))
        how = {
            "uniform": f"uniform_(0.0, {scale!r})",
            "signed": f"uniform_({-scale!r}, {scale!r})",
            "normal": f"normal_(0.0, {scale!r})",
            "ones": f"fill_({scale!r})",
            "zeros": "zero_()",
        }.get(spec.official)
        if how is None:
            raise BadInputError(
                f"weight '{spec.name}' of '{problem.name}' is drawn by '{spec.official}': it can't be exported"
            )
        result.append(Weight(_attribute(place), place, lengths(spec.shape, axes), how))
    return result


def repeated_weights(adapted: Adapted) -> list[Weight]:
    """As the problem file makes them, with the draws that it throws away. Raises BadInputError where they can't be repeated."""
    initialisers = adapted.description.initialisers
    if initialisers is None:
        raise BadInputError(
            f"the weights of {adapted.file.id} are computed, not only drawn: a candidate can't repeat them"
        )
    places = {parameter.name: place for place, parameter in enumerate(adapted.description.parameters)}
    result = []
    for initialiser in initialisers:
        made = initialiser.made
        match made.by:
            case "uniform":
                how = f"uniform_({made.low!r}, {made.high!r})"
            case "normal":
                how = f"normal_({made.mean!r}, {made.deviation!r})"
            case "constant":
                how = f"fill_({made.value!r})"
            case _:
                how = f"random_({int(made.low)}, {int(made.high)})"
        place = places.get(initialiser.parameter, -1)
        result.append(Weight(_attribute(place) if place >= 0 else "", place, initialiser.shape, how))
    return result


def _attribute(place: int) -> str:
    return f"weight_{place}"
