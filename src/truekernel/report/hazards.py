"""Hazards by mutant: what was proven, where, as far as it is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from truekernel.audit.summary import HazardSummary

_MADE = re.compile(r"(?:buffer )?'?\b(?:empty|zeros)(\d+)\b'?")
"""A buffer that the launch plan made: the user gave it no name, the recorder counts all buffers from 0."""
_BYTE = re.compile(r" at byte (-?\d+)$")
_MOST_BYTES = 3


@dataclass(frozen=True, slots=True)
class Proof:
    """One kind of fault of a mutant. `places`: block, thread, line and buffer of the first; "" when not known."""

    outcome: str
    message: str
    places: str
    schedules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HazardGroup:
    """A mutant with all its hazards. `witnessed`: an output shows it too."""

    mutant: str
    program: str
    rules: tuple[str, ...]
    witnessed: bool
    proofs: tuple[Proof, ...]


def by_mutant(hazards: Sequence[HazardSummary]) -> tuple[HazardGroup, ...]:
    """One group a mutant, in the order of their first hazards. Hazards that differ in the byte alone become one line."""
    grouped: dict[str, list[HazardSummary]] = {}
    for hazard in hazards:
        grouped.setdefault(hazard.mutant, []).append(hazard)
    return tuple(
        HazardGroup(
            mutant,
            own[0].program,
            tuple(dict.fromkeys(change.rule for change in own[0].changes)),
            own[0].witnessed,
            _proofs(own),
        )
        for mutant, own in grouped.items()
    )


def outcomes(groups: Sequence[HazardGroup]) -> dict[str, int]:
    """Number of mutants for each kind of fault; a mutant with two kinds counts for both."""
    kinds = sorted({proof.outcome for group in groups for proof in group.proofs})
    return {kind: sum(any(proof.outcome == kind for proof in group.proofs) for group in groups) for kind in kinds}


def _proofs(hazards: Sequence[HazardSummary]) -> tuple[Proof, ...]:
    kinds: dict[tuple[str, str, str], list[HazardSummary]] = {}
    for hazard in hazards:
        kinds.setdefault((hazard.outcome, _BYTE.sub("", hazard.message), place(hazard)), []).append(hazard)
    return tuple(
        Proof(
            outcome.replace("_", " "),
            _named(message) + _bytes([m[1] for h in own if (m := _BYTE.search(h.message))]),
            where,
            tuple(dict.fromkeys(h.schedule for h in own if h.schedule)),
        )
        for (outcome, message, where), own in kinds.items()
    )


def _bytes(found: Sequence[str]) -> str:
    """ " at byte 4", " at bytes 4, 300, 960 and 3 more"."""
    numbers = sorted(set(map(int, found)))
    if not numbers:
        return ""
    shown = ", ".join(map(str, numbers[:_MOST_BYTES]))
    more = f" and {len(numbers) - _MOST_BYTES} more" if len(numbers) > _MOST_BYTES else ""
    return f" at byte{'s' if len(numbers) > 1 else ''} {shown}{more}"


def place(hazard: HazardSummary) -> str:
    """Where a hazard struck, as far as known and not in its message; "" when nothing is."""
    parts = []
    if hazard.block is not None:
        parts.append(f"block {_triple(hazard.block)}")
    if hazard.thread is not None:
        parts.append(f"thread {_triple(hazard.thread)}")
    if hazard.line is not None:
        parts.append(f"line {hazard.line}")
    if hazard.buffer is not None:
        byte = "" if hazard.offset is None else f" at byte {hazard.offset}"
        parts.append(_named(hazard.buffer) + ("" if f"{byte} " in hazard.message else byte))
    return ", ".join(parts)


def _named(text: str) -> str:
    return _MADE.sub(r"buffer \1 of the launch plan", text)


def _triple(index: tuple[int, int, int]) -> str:
    return "(" + ", ".join(map(str, index)) + ")"
