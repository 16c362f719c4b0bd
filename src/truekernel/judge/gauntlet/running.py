"""Run the attacks and their twins through the judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from truekernel.errors import BadInputError, UnknownNameError
from truekernel.judge.candidates import load_candidate
from truekernel.judge.check import check, prepare
from truekernel.judge.gauntlet.catalogue import ATTACKS, Attack
from truekernel.judge.posing import pose
from truekernel.judge.steps import new_secret
from truekernel.judge.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Tried:
    """An attack and its twin, judged on the same secret cases in processes of their own."""

    attack: Attack
    cheat: Verdict
    twin: Verdict

    @property
    def caught(self) -> bool:
        """Whether the cheat is not called right."""
        return self.cheat.word != "right"

    @property
    def cleared(self) -> bool:
        """Whether the twin is called right."""
        return self.twin.word == "right"

    def document(self) -> dict[str, object]:
        """As JSON types."""
        return {
            **self.attack.document(),
            "caught": self.caught,
            "cheat": {"word": self.cheat.word, "why": self.cheat.why},
            "cleared": self.cleared,
            "twin": {"word": self.twin.word, "why": self.twin.why},
        }


def chosen(names: Sequence[str]) -> list[Attack]:
    """The attacks of names or groups, all where none is given. Raises UnknownNameError."""
    known = {attack.name: [attack] for attack in ATTACKS}
    for attack in ATTACKS:
        known.setdefault(attack.group, []).append(attack)
    for name in names:
        if name not in known:
            raise UnknownNameError("attack", name, list(known))
    wanted = {attack.name for name in names for attack in known[name]}
    return [attack for attack in ATTACKS if not names or attack.name in wanted]


def run_gauntlet(attacks: Sequence[Attack], done: Callable[[Tried], None] | None = None) -> list[Tried]:
    """Judge all attacks and twins, problem by problem; cases are drawn once for a problem. `done` is called after each attack. Raises MachineError."""
    found: list[Tried] = []
    for problem in dict.fromkeys(attack.problem for attack in attacks):
        posed = pose(problem)
        suite = prepare(posed, new_secret())
        if not suite.steps:
            raise BadInputError(f"'{problem}' has no case that could be judged")
        for attack in attacks:
            if attack.problem != problem:
                continue
            verdicts = [
                check(load_candidate(attack.file(role), posed.problem), posed, suite=suite)
                for role in ("cheat", "twin")
            ]
            found.append(Tried(attack, verdicts[0], verdicts[1]))
            if done is not None:
                done(found[-1])
    order = {attack.name: number for number, attack in enumerate(attacks)}
    return sorted(found, key=lambda tried: order[tried.attack.name])
