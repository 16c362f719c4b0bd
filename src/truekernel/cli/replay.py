"""`truekernel replay`: see a mutant's witness again, or repeat the verdict of a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from truekernel.cli.audit import DEFAULT_RUN
from truekernel.cli.output import console, print_json


def replay(what: str, /, *, run: Path = DEFAULT_RUN, json: Annotated[bool, Parameter(negative="")] = False) -> int:
    """Compile a mutant alone, run its witness again and compare with what the run recorded; or judge the candidate of a bundle again, with its seeds.

    Exits with 0 when outcome and output bits of a mutant are the same, or the verdict of a bundle is; with 1 when they are not. A bundle that was changed after it was sealed is refused.

    Parameters
    ----------
    what
        Id of a mutant, as reports give it; or a bundle of `truekernel check`, directory or zip.
    run
        Run directory of the audit.
    json
        Print one JSON document.
    """
    from truekernel.judge.evidence import is_bundle

    if is_bundle(what):
        return _bundle(Path(what), json=json)
    from truekernel.audit import replay as replay_mutant
    from truekernel.report import print_replay

    result = replay_mutant(run, what)
    if json:
        print_json(result.document())
    else:
        print_replay(result, console())
    return 0 if result.same else 1


def _bundle(place: Path, *, json: bool) -> int:
    from truekernel.judge.replaying import replay as replay_bundle

    result = replay_bundle(place)
    document = {
        "same": result.same,
        "differs": list(result.differs),
        "same_bits": result.bits,
        "seal": result.seal,
        "stated": result.stated.word,
        "found": result.found.word,
    }
    if json:
        print_json(document)
        return 0 if result.same else 1
    out = console()
    out.print(
        f"{'reproduced' if result.same else 'NOT REPRODUCED'}: {result.found.word}, {result.found.why}", soft_wrap=True
    )
    if result.differs:
        out.print(
            f"differs in: {', '.join(result.differs)}; the bundle says {result.stated.word}, {result.stated.why}",
            soft_wrap=True,
        )
    out.print(f"outputs: {'the same bits' if result.bits else 'other bits, as other machines may give'}")
    out.print(f"seal: {result.seal}")
    return 0 if result.same else 1
