"""Libraries that can be fuzzed: one adapter each."""

from __future__ import annotations

import importlib
import pkgutil

from truekernel.errors import BadInputError, UnknownNameError
from truekernel.fuzz.library import Library


def names() -> list[str]:
    """Names of all adapters."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if "_" not in module.name)


def load(name: str) -> Library:
    """The adapter of a library. Raises UnknownNameError for a library without one, BadInputError where the library is not installed."""
    if name not in names():
        raise UnknownNameError("library", name, names())
    try:
        module = importlib.import_module(f"{__name__}.{name}")
        library: Library = module.library()
    except ModuleNotFoundError as error:
        raise BadInputError(
            f"{name} can't be fuzzed here: {error.name} is not installed (pip install {error.name})"
        ) from error
    return library
