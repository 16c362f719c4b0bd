"""From lengths that were seen to expressions over axes: how a dimension follows the constants of its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

LARGEST_STEP = 16
"""Largest divisor looked for in lengths such as (H + 2) // 4 - 1: strides of convolutions and windows."""
Seen = Sequence[tuple[int, int]]
"""(value of the constant, length of the dimension) pairs, the official one first."""


def follow(name: str, seen: Seen) -> str | None:
    """An expression of one axis that gives every length seen; None when no simple one does.

    Tried: p * a + q, then (a + q) // s + c with the least s and q that fit.
    """
    straight = _straight(name, seen)
    return straight if straight is not None else _stepped(name, seen)


def expression(official: int, movers: Mapping[str, Seen]) -> str | int | None:
    """The length of a dimension over all axes that move it: a number when none does, an expression, or None when none was found.

    Several axes: their product times a number, or a sum.
    """
    if not movers:
        return official
    if len(movers) == 1:
        ((name, seen),) = movers.items()
        return follow(name, seen)
    return _product(official, movers) or _sum(official, movers)


def _straight(name: str, seen: Seen) -> str | None:
    (a0, l0), (a1, l1) = seen[0], seen[1]
    if (l1 - l0) % (a1 - a0):
        return None
    p = (l1 - l0) // (a1 - a0)
    q = l0 - p * a0
    if p == 0 or any(p * a + q != length for a, length in seen):
        return None
    return _shifted(name if p == 1 else f"{p} * {name}", q)


def _stepped(name: str, seen: Seen) -> str | None:
    if len(seen) < 3:
        return None
    (a0, l0), *_ = seen
    for s in range(2, LARGEST_STEP + 1):
        for q in range(s):
            c = l0 - (a0 + q) // s
            if all((a + q) // s + c == length for a, length in seen):
                return _shifted(f"({_shifted(name, q)}) // {s}" if q else f"{name} // {s}", c)
    return None


def _product(official: int, movers: Mapping[str, Seen]) -> str | None:
    factor = official
    for seen in movers.values():
        a0, l0 = seen[0]
        if factor % a0 or any(length * a0 != l0 * a for a, length in seen):
            return None
        factor //= a0
    names = " * ".join(movers)
    return names if factor == 1 else f"{factor} * {names}"


def _sum(official: int, movers: Mapping[str, Seen]) -> str | None:
    """A sum of multiples, e.g. H - K + 1: what one axis adds does not depend on the others."""
    terms, rest = [], official
    for name, seen in movers.items():
        (a0, l0), (a1, l1) = seen[0], seen[1]
        if (l1 - l0) % (a1 - a0):
            return None
        p = (l1 - l0) // (a1 - a0)
        if p == 0 or any(length - l0 != p * (a - a0) for a, length in seen):
            return None
        terms.append(("-" if p < 0 else "+", name if abs(p) == 1 else f"{abs(p)} * {name}"))
        rest -= p * a0
    terms.sort()
    text = terms[0][1] if terms[0][0] == "+" else f"0 - {terms[0][1]}"
    for sign, term in terms[1:]:
        text += f" {sign} {term}"
    return _shifted(text, rest)


def _shifted(text: str, q: int) -> str:
    return text if q == 0 else f"{text} {'+' if q > 0 else '-'} {abs(q)}"
