"""Attributes that the grammar can't read, blanked in the parser's copy of a source."""

from __future__ import annotations

import re

_BALANCED = r"\s*\((?:[^()]|\([^()]*\))*\)"
_WITH_ARGUMENT = r"__align__|__cluster_dims__|__block_size__|__maxnreg__|__attribute__|__declspec"
_ALONE = (
    r"C10_LAUNCH_BOUNDS_[0-2]|__grid_constant__|__noinline__|__inline_hint__|__nv_pure__|__managed__"
    r"|C10_HOST_DEVICE|C10_DEVICE|C10_HOST"
)
_ATTRIBUTE = re.compile(
    rf"\b(?:(?:{_WITH_ARGUMENT}){_BALANCED}|C10_LAUNCH_BOUNDS_[0-2]{_BALANCED}|(?:{_ALONE})\b)".encode()
)
_LAMBDA = re.compile(rb"\]\s*((?:__(?:host|device)__\s*)+)(?=[({])")


def _blank(piece: bytes) -> bytes:
    return re.sub(rb"[^\n]", b" ", piece)


def masked(data: bytes) -> bytes:
    """Return `data` with such attributes overwritten by blanks: same length, same line breaks, so every offset keeps its meaning.

    Blanked: alignment, cluster, register and vendor attributes, and `__device__`/`__host__` of lambdas.
    """
    data = _ATTRIBUTE.sub(lambda match: _blank(match[0]), data)
    return _LAMBDA.sub(lambda match: match[0].replace(match[1], _blank(match[1])), data)
