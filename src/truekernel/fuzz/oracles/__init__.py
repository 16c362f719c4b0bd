"""Judges of one case: each states when it is valid."""

from __future__ import annotations

from truekernel.fuzz.library import Oracle


def torch_oracles() -> list[Oracle]:
    """All judges for torch, cheap ones first. `compile` is a tier of its own: it is asked only where it is named."""
    from truekernel.fuzz.oracles.batching import Batching
    from truekernel.fuzz.oracles.compiled import Compiled
    from truekernel.fuzz.oracles.determinism import Determinism
    from truekernel.fuzz.oracles.gradient import Gradient
    from truekernel.fuzz.oracles.in_place import InPlace, Out
    from truekernel.fuzz.oracles.layout import Layout
    from truekernel.fuzz.oracles.metadata import Metadata
    from truekernel.fuzz.oracles.neighbours import Neighbours
    from truekernel.fuzz.oracles.precision import Precision
    from truekernel.fuzz.oracles.settling import Settled

    judges: list[Oracle] = [
        Determinism(),
        Metadata(),
        Neighbours(),
        Layout(),
        InPlace(),
        Out(),
        Precision(),
        Batching(),
        Gradient(),
        Compiled(),
    ]
    return [Settled(judge) for judge in judges]


EAGER = ("determinism", "metadata", "neighbours", "layout", "in_place", "out", "precision", "batching", "gradient")
"""Names of the judges that are cheap enough to be asked in every run."""
TIERS = {"eager": EAGER, "compile": ("compile",), "none": ()}
