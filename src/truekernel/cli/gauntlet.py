"""`truekernel gauntlet`: known ways to cheat, tried on our own judge or on somebody else's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from truekernel.cli.names import names_of
from truekernel.cli.output import console, print_json

if TYPE_CHECKING:
    from truekernel.judge.gauntlet.catalogue import Attack


def gauntlet(
    *,
    attacks: Annotated[list[str] | None, Parameter(name=("--attacks", "--attack"), negative="")] = None,
    against: str | None = None,
    against_seconds: float = 300.0,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Try known ways to cheat, each with an honest twin, on `truekernel check` or on an evaluator of yours. Exits with 1 when a cheat is called right or a twin is not.

    Parameters
    ----------
    attacks
        Names or groups (answer, numbers, memory, reading, replay, harness); may be repeated. Default: all.
    against
        Command to measure in place of our judge, e.g. "python my_eval.py {reference} {candidate}": two Python files in the form of KernelBench. It says its verdict as for --checker-cmd of
        `truekernel audit`. Nothing keeps an attack from what that process may do: these write to every open descriptor and to temporary files, patch torch
        and the functions of an evaluator, and end processes, no more.
    against_seconds
        Limit of one run of such a command.
    json
        Print the results as one JSON document.
    """
    from truekernel.judge.gauntlet.running import Tried, chosen, run_gauntlet

    out = console()
    wanted = chosen(names_of(attacks))
    if against is not None:
        return _against(against, against_seconds, wanted, json=json)

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

    results = run_gauntlet(wanted, told)
    caught, cleared = sum(t.caught for t in results), sum(t.cleared for t in results)
    if json:
        print_json(
            {"caught": caught, "cleared": cleared, "of": len(results), "attacks": [t.document() for t in results]}
        )
    else:
        out.print(f"{caught} of {len(results)} cheats caught, {cleared} of {len(results)} honest twins called right")
    return 0 if caught == cleared == len(results) else 1


def _against(command: str, seconds: float, attacks: Sequence[Attack], *, json: bool) -> int:
    """Measure an evaluator."""
    from truekernel.checkers import command_name
    from truekernel.judge.gauntlet.against import Asked, run_against

    out = console()
    words = {"reject": "caught ", "accept": "FOOLED ", "undetermined": "broke  "}

    def told(asked: Asked) -> None:
        if json:
            return
        why = f" ({asked.cheat.why})" if asked.cheat.why else ""
        out.print(f"{words[asked.cheat.verdict]} {asked.attack.name}: {asked.attack.title}{why}", soft_wrap=True)
        if not asked.cleared:
            out.print(
                f"FLAGGED {asked.attack.name}, its honest twin ({asked.twin.verdict}: {asked.twin.why})", soft_wrap=True
            )

    results = run_against(command_name(command, seconds), attacks, told)
    counts = {
        "fooled": sum(a.fooled for a in results),
        "caught": sum(a.caught for a in results),
        "cleared": sum(a.cleared for a in results),
        "of": len(results),
    }
    if json:
        print_json({"command": command, **counts, "attacks": [a.document() for a in results]})
    else:
        out.print(
            f"{counts['fooled']} of {counts['of']} cheats accepted, {counts['caught']} rejected; {counts['cleared']} of {counts['of']} honest twins accepted"
        )
    return 0 if counts["caught"] == counts["cleared"] == counts["of"] else 1
