"""Repeat the verdict of a bundle: the same candidate, problem and seeds, here and now."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from truekernel.judge.check import check
from truekernel.judge.evidence import read_bundle, reference_file
from truekernel.judge.posing import pose
from truekernel.judge.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Repeated:
    """`differs`: what is not the same, apart from times; `bits`: whether every output had the same bytes, which other machines need not give."""

    stated: Verdict
    found: Verdict
    differs: tuple[str, ...]
    bits: bool
    seal: str

    @property
    def same(self) -> bool:
        """Whether the verdict was reproduced."""
        return not self.differs


def replay(place: Path) -> Repeated:
    """Read a bundle, refuse it when it was tampered with, and judge its candidate again with its seeds. Raises BadInputError, MachineError."""
    bundle = read_bundle(place)
    file = reference_file(bundle) if bundle.reference else None
    try:
        posed = pose(str(file) if file else bundle.problem)
        found = check(bundle.candidate, posed, secret=bundle.secret, declared=bundle.declared)
    finally:
        if file:
            shutil.rmtree(file.parent, ignore_errors=True)
    hashes = [[case.output_sha256 for case in verdict.cases] for verdict in (bundle.verdict, found)]
    return Repeated(bundle.verdict, found, tuple(bundle.verdict.same_as(found)), hashes[0] == hashes[1], bundle.seal)
