"""Seeds of suites and seeds of witnesses come from ranges that can't meet: no checker, ours included, may see a witness's input."""

from __future__ import annotations

import hashlib

SUITE_END = 1 << 31
"""Seeds of checkers' suites lie in [0, SUITE_END)."""
WITNESS_START = 1 << 40
"""Seeds of the witness search lie in [WITNESS_START, 2 * WITNESS_START)."""


def _hash(*parts: str | int) -> int:
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def suite_seed(checker: str, problem: str, number: int) -> int:
    """Seed of a checker's case, below SUITE_END."""
    return _hash("suite", checker, problem, number) % SUITE_END


def witness_seed(problem: str, number: int) -> int:
    """Seed of a case of the witness search, at or above WITNESS_START."""
    return WITNESS_START + _hash("witness", problem, number) % WITNESS_START


def is_witness_seed(seed: int) -> bool:
    """Whether a seed belongs to the witness search. Authors of checkers can prove with it that a suite of theirs sees no witness."""
    return seed >= WITNESS_START
