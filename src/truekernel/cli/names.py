"""Lists on the command line."""

from __future__ import annotations

from collections.abc import Iterable


def names_of(given: Iterable[str] | None) -> tuple[str, ...]:
    """Names from repeated options and from lists with commas, each once, in order."""
    parts = (part.strip() for text in given or () for part in text.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))
