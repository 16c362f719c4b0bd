"""All checkers by name."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from truekernel.checkers import exact_official, kernelbench, kernelbench_verified, truekernel
from truekernel.checkers.checker import Checker
from truekernel.checkers.external import load_external
from truekernel.checkers.external_command import is_command, load_command
from truekernel.errors import BadInputError, UnknownNameError

GROUPS: dict[str, tuple[str, ...]] = {"kernelbench": ("kernelbench@1e-2", "kernelbench@1e-4")}
"""Names that stand for several checkers."""


@cache
def checkers() -> dict[str, Checker]:
    """The checkers of the package, published ones first."""
    modules = (kernelbench, kernelbench_verified, exact_official, truekernel)
    return {checker.name: checker for module in modules for checker in module.CHECKERS}


def resolve(names: Iterable[str]) -> dict[str, Checker]:
    """The named checkers, in order and without repetition. "kernelbench" selects both tolerance eras, "package.module:function" a callable,
    "cmd:<command>" a command.

    Raises UnknownNameError with the nearest names, BadInputError when a callable can't be imported or nothing is named.
    """
    found: dict[str, Checker] = {}
    for name in names:
        if is_command(name):
            found[name] = load_command(name)
        elif ":" in name:
            found[name] = load_external(name)
        elif name in GROUPS:
            found |= {member: checkers()[member] for member in GROUPS[name]}
        elif name in checkers():
            found[name] = checkers()[name]
        else:
            raise UnknownNameError("checker", name, [*GROUPS, *checkers()])
    if not found:
        raise BadInputError(f"no checker is named: use one of {', '.join([*GROUPS, *checkers()])}")
    return found
