"""Lists on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from truekernel.errors import BadInputError


def whole(_kind: Any, tokens: Sequence[Any]) -> int:
    """A whole number. Raises BadInputError for a fraction, which would be cut."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise BadInputError(f"{tokens[0].keyword or 'value'} {tokens[0].value[:80]}: give a whole number") from None


def names_of(given: Iterable[str] | None) -> tuple[str, ...]:
    """Names from repeated options and from lists with commas, each once, in order. Raises BadInputError for a list that names nothing: it would mean all."""
    found: dict[str, None] = {}
    for text in given or ():
        names = [part.strip() for part in text.split(",") if part.strip()]
        if not names:
            raise BadInputError(f"'{text[:80]}' names nothing: give a name, or leave the option out")
        found |= dict.fromkeys(names)
    return tuple(found)
