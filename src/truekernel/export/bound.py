"""Candidates for a problem of a user's checkout: its weights, its shapes."""

from __future__ import annotations

from truekernel.corpus.kernelbench import Adapted
from truekernel.corpus.kernelbench.binding import Link, bind
from truekernel.export.kernelbench import model_new
from truekernel.export.subject import Subject
from truekernel.export.weights import repeated_weights
from truekernel.model import Axes, Problem
from truekernel.model.lengths import lengths


def bound_model_new(subject: Subject, problem: Problem, adapted: Adapted, axes: Axes, *, host: str = "nvrtc") -> str:
    """The candidate (see `model_new`) whose weights are drawn as the problem file draws them, and whose outputs have its shapes.

    Raises NotBoundError when the problem is not the one of the file, BadInputError when its weights can't be repeated.
    """
    link = bind(problem, adapted).reference
    assert isinstance(link, Link)
    theirs = link.their_axes(axes)
    official = axes == problem.official_axes()
    shapes = (
        [output.shape for output in adapted.description.outputs]
        if official
        else [lengths(spec.shape, theirs) for spec in adapted.problem.outputs]
    )
    return model_new(subject, problem, axes, host=host, weights=repeated_weights(adapted), output_shapes=shapes)
