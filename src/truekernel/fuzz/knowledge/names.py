"""Which operators are kin: many names stand for one kernel, and a bug in one is often in the others."""

from __future__ import annotations

import re
from functools import cache

_PREFIXES = ("mkldnn", "quantized", "native", "thnn", "slow", "foreach", "fused")
_SUFFIXES = ("backwarddata", "backward", "withindices", "forcpu", "forwardonly", "forward", "copy", "cpufallback")
_DIMENSION = re.compile(r"[123]d$")


@cache
def stem(name: str) -> str:
    """What the names of one operator have in common.

    >>> stem("torch.nn.MaxPool2d"), stem("torch.ops.aten.max_pool2d_with_indices_backward.default")
    ('maxpool2d', 'maxpool2d')

    The overload, underscores, capitals, the words for a back end in front and for a direction behind are dropped.
    """
    parts = name.split(".")
    last = parts[-2] if len(parts) == 5 and parts[:2] == ["torch", "ops"] else parts[-1]
    word = last.lower().replace("_", "")
    for prefix in _PREFIXES:
        if word.startswith(prefix) and len(word) > len(prefix) + 2:
            word = word[len(prefix) :]
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) > len(suffix) + 2:
            word = word[: -len(suffix)]
    return word


@cache
def kin(name: str) -> str:
    """The stem without the number of spatial dimensions: `maxpool` for `max_pool1d` to `max_pool3d`."""
    return _DIMENSION.sub("", stem(name))
