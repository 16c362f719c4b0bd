"""`truekernel replay`: see a mutant's witness again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from truekernel.cli.audit import DEFAULT_RUN
from truekernel.cli.output import console, print_json


def replay(mutant: str, /, *, run: Path = DEFAULT_RUN, json: Annotated[bool, Parameter(negative="")] = False) -> int:
    """Compile a mutant alone, run its witness again and compare with what the run recorded.

    Exits with 0 when outcome and output bits are the same, with 1 when they are not.

    Parameters
    ----------
    mutant
        Id of a mutant, as reports give it.
    run
        Run directory of the audit.
    json
        Print one JSON document.
    """
    from truekernel.audit import replay as replay_mutant
    from truekernel.report import print_replay

    result = replay_mutant(run, mutant)
    if json:
        print_json(result.document())
    else:
        print_replay(result, console())
    return 0 if result.same else 1
