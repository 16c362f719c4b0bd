"""Shapes of past bugs, laid over a call that is already built (`choices.PATTERNS`)."""

from __future__ import annotations

import random as randomness
from collections.abc import Callable
from dataclasses import replace

from truekernel.fuzz.forms import with_leaves
from truekernel.fuzz.records import Call, Leaf, Shared, TensorValue

WINDOWS = (31, 100, 255, 1000, 65536, 2147483647, 1 << 40, 1 << 62)
COLLAPSED = 1024
MANY = 16


def applied(pattern: str, call: Call, random: randomness.Random) -> Call:
    """The call in the shape of `pattern`; as it is where the pattern has nothing to work on."""
    if pattern == "none":
        return call
    if pattern == "repeat":
        return replace(call, repeat=MANY)
    leaves = call.leaves()
    _PATTERNS[pattern](leaves, random)
    return with_leaves(call, leaves)


def _tensors(leaves: list[Leaf]) -> list[tuple[int, TensorValue]]:
    return [(slot, leaf) for slot, leaf in enumerate(leaves) if isinstance(leaf, TensorValue)]


def _extreme_window(leaves: list[Leaf], random: randomness.Random) -> None:
    """Whole numbers, such as kernel, stride and padding, far beyond the input."""
    numbers = [slot for slot, leaf in enumerate(leaves) if isinstance(leaf, int) and not isinstance(leaf, bool)]
    size = random.choice(WINDOWS)
    for slot in random.sample(numbers, min(len(numbers), random.choice((1, 2, 4)))):
        leaves[slot] = size if random.random() < 0.8 else -size


def _collapse(leaves: list[Leaf], random: randomness.Random) -> None:
    """A large plane; whole numbers become 1."""
    for slot, leaf in _tensors(leaves)[:1]:
        if len(leaf.shape) > 1:
            leaves[slot] = replace(
                leaf, shape=(*(min(size, 2) for size in leaf.shape[:-2]), COLLAPSED, COLLAPSED), data=None
            )
    for slot, number in enumerate(leaves):
        if isinstance(number, int) and not isinstance(number, bool) and random.random() < 0.7:
            leaves[slot] = 1


def _alias(leaves: list[Leaf], random: randomness.Random) -> None:
    """Two arguments are one tensor."""
    tensors = _tensors(leaves)
    pairs = [
        (a, b)
        for a, one in tensors
        for b, other in tensors
        if a < b and one.shape == other.shape and one.dtype == other.dtype
    ]
    if not pairs and len(tensors) > 1:
        pairs = [(tensors[0][0], tensors[1][0])]
    if pairs:
        kept, replaced = random.choice(pairs)
        leaves[replaced] = Shared(-1, kept)


def _huge_stride(leaves: list[Leaf], random: randomness.Random) -> None:
    for slot, leaf in _tensors(leaves):
        shape = leaf.shape
        if shape and 1 not in shape and random.random() < 0.5:
            place = random.randrange(len(shape))
            shape = (*shape[:place], 1, *shape[place + 1 :])
        leaves[slot] = replace(leaf, shape=shape, layout="huge_stride", data=None if shape != leaf.shape else leaf.data)


def _empty(leaves: list[Leaf], random: randomness.Random) -> None:
    """No elements, in one tensor or in all."""
    tensors = [(slot, leaf) for slot, leaf in _tensors(leaves) if leaf.shape]
    for slot, leaf in tensors if random.random() < 0.5 else tensors[:1]:
        place = random.randrange(len(leaf.shape))
        leaves[slot] = replace(leaf, shape=(*leaf.shape[:place], 0, *leaf.shape[place + 1 :]))


def _special_values(leaves: list[Leaf], random: randomness.Random) -> None:
    recipe = random.choice(("mixed", "extreme", "nan", "infinite", "subnormal"))
    for slot, leaf in _tensors(leaves):
        leaves[slot] = replace(leaf, values=recipe, data=None)


_PATTERNS: dict[str, Callable[[list[Leaf], randomness.Random], None]] = {
    "extreme_window": _extreme_window,
    "collapse": _collapse,
    "alias": _alias,
    "huge_stride": _huge_stride,
    "empty": _empty,
    "special_values": _special_values,
}
