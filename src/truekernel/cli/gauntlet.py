"""`truekernel gauntlet`: known ways to cheat, tried on our own judge."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from truekernel.cli.names import names_of
from truekernel.cli.output import console, print_json


def gauntlet(
    *,
    attacks: Annotated[list[str] | None, Parameter(name=("--attacks", "--attack"), negative="")] = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Try known ways to cheat, each with an honest twin, on `truekernel check`. Exits with 1 when a cheat is called right or a twin is not.

    Parameters
    ----------
    attacks
        Names or groups (answer, numbers, memory, reading, replay, harness); may be repeated. Default: all.
    json
        Print the results as one JSON document.
    """
    from truekernel.judge.gauntlet.running import Tried, chosen, run_gauntlet

    out = console()

    def told(tried: Tried) -> None:
        if json:
            return
        word = "caught " if tried.caught else "MISSED "
        out.print(
            f"{word} {tried.attack.name}: {tried.attack.title} ({tried.cheat.word}: {tried.cheat.why})", soft_wrap=True
        )
        if not tried.cleared:
            out.print(
                f"FLAGGED {tried.attack.name}, its honest twin ({tried.twin.word}: {tried.twin.why})", soft_wrap=True
            )

    results = run_gauntlet(chosen(names_of(attacks)), told)
    caught, cleared = sum(t.caught for t in results), sum(t.cleared for t in results)
    if json:
        print_json(
            {"caught": caught, "cleared": cleared, "of": len(results), "attacks": [t.document() for t in results]}
        )
    else:
        out.print(f"{caught} of {len(results)} cheats caught, {cleared} of {len(results)} honest twins called right")
    return 0 if caught == cleared == len(results) else 1
