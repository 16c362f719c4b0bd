"""Baselines by name or glob."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from truekernel.errors import UnknownNameError


def chosen(wanted: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Names of `known` that any of `wanted` means, all when there is none. Raises UnknownNameError with the nearest."""
    found = [name for name in known if not wanted or any(fnmatchcase(name, pattern) for pattern in wanted)]
    for pattern in wanted:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise UnknownNameError("baseline", pattern, list(known))
    return tuple(found)
