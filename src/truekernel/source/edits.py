"""Byte-span edits of a text, and the small set of edits that rewrites are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from truekernel.errors import BadInputError
from truekernel.model import Edit


class Spanned(Protocol):
    """Anything with a byte span: a `Node` of a CUDA tree, a `PlanNode` of a launch plan, an `Edit`."""

    @property
    def start(self) -> int:
        """First byte."""

    @property
    def end(self) -> int:
        """Byte after the last."""


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return `text` after `edits`, in any order; spans are bytes of the UTF-8 text and refer to the text before any edit.

    Two insertions at one place keep the order in which they are given. Raises BadInputError when edits overlap, lie outside
    the text, or cut a character in two.
    """
    data = text.encode()
    pieces: list[bytes] = []
    position = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < position:
            raise BadInputError(f"edits overlap at byte {edit.start}: give each edit its own span")
        if not edit.start <= edit.end <= len(data):
            raise BadInputError(f"edit [{edit.start}, {edit.end}) is outside the text of {len(data)} bytes")
        pieces += [data[position : edit.start], edit.replacement.encode()]
        position = edit.end
    pieces.append(data[position:])
    try:
        return b"".join(pieces).decode()
    except UnicodeDecodeError as error:
        raise BadInputError(f"an edit cuts a character in two near byte {error.start}") from None


def replace(node: Spanned, text: str) -> Edit:
    """Put `text` in the place of `node`."""
    return Edit(node.start, node.end, text)


def insert_before(node: Spanned, text: str) -> Edit:
    """Put `text` right before `node`."""
    return Edit(node.start, node.start, text)


def insert_after(node: Spanned, text: str) -> Edit:
    """Put `text` right after `node`."""
    return Edit(node.end, node.end, text)


def between(first: Spanned, last: Spanned, text: str) -> Edit:
    """Put `text` in the place of everything from the start of `first` to the end of `last`."""
    return Edit(first.start, last.end, text)


def remove_statement(node: Spanned) -> Edit:
    """Replace a statement by the empty statement, which is legal wherever a statement is (also as the body of an `if`)."""
    return Edit(node.start, node.end, ";")


def drop_before(kept: Spanned, whole: Spanned) -> Edit:
    """Delete what stands before `kept` inside `whole`: the left operand and the operator of `a + b` when `kept` is `b`."""
    return Edit(whole.start, kept.start, "")


def drop_after(kept: Spanned, whole: Spanned) -> Edit:
    """Delete what stands after `kept` inside `whole`: the operator and the right operand of `a + b` when `kept` is `a`."""
    return Edit(kept.end, whole.end, "")
