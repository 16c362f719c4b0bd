"""What decides what to try next: the interface of all policies, and what they can see.

A driver asks the space for the questions of one case, lets the policy answer each, executes the case and gives the policy the feedback:

    steps = space.questions(random)               # a coroutine: yields (Node, Options), takes an index, returns a TestCase
    node, options = next(steps)
    while True:
        node, options = steps.send(policy.choose(node, options, state))   # StopIteration.value is the case
    policy.learn(feedback)

`space.build(policy, state, random)` is this loop. A Gymnasium environment may run the coroutine itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from truekernel.fuzz.choices import Node, Options
from truekernel.fuzz.records import Call, Feedback, Operator

REMEMBERED = 10


@dataclass(slots=True)
class State:
    """What a policy may look at while it chooses. The driver keeps it; a policy does not change it.

    `operator`: of the call being built, None before it is chosen. `calls`: those of this case that are built. `choices`: (node, chosen index) of this case so far.
    `recent`: feedback of the last ten cases, the newest last. `executed`, `valid`, `functions`, `findings`: counts over the run. `seconds`: since it began.
    """

    operator: Operator | None = None
    calls: list[Call] = field(default_factory=list)
    choices: list[tuple[Node, int]] = field(default_factory=list)
    recent: deque[Feedback] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    executed: int = 0
    valid: int = 0
    functions: int = 0
    findings: int = 0
    seconds: float = 0.0


class Policy(Protocol):
    """Chooses among open options and learns from what came of it. One policy serves one run; several processes have one each."""

    name: str

    def choose(self, node: Node, options: Options, state: State) -> int:
        """An element of `options.open`."""
        ...

    def learn(self, feedback: Feedback) -> None:
        """What came of the case whose choices were made since the last call."""
        ...

    def save(self, directory: Path) -> None:
        """Write what was learned into `directory`, which exists; overwrites."""
        ...

    def load(self, directory: Path) -> None:
        """Go on from what `save` wrote. Raises RunDirectoryError where that can't be read."""
        ...


class Vocabularies(Protocol):
    """What a policy is made with: the space, as far as it concerns policies."""

    feature_names: tuple[str, ...]
    """Names of `Operator.features`."""

    def vocabulary(self, kind: str) -> Sequence[str]:
        """All options of a kind of node."""
        ...

    def operators(self) -> Sequence[Operator]:
        """Those that can be chosen, in the order of the kind `operator`."""
        ...


class CoverageSource(Protocol):
    """Counts what a case reached, in the process that executes cases. One instance an executor process; it is made before the fork.

    `kind` names a field of `Feedback` (`functions`, `overloads`, `lines`, `kernels`), and its items have that field's type.
    """

    kind: str
    judging: bool
    """Whether the runs of oracles are watched too, each between a `begin` and an `end` of its own: a compiler runs only there."""

    def start(self) -> None:
        """Begin, after the fork, in the executing process."""
        ...

    def forget(self, seen: Sequence[int | str]) -> None:
        """Never report these again: what earlier processes of this run have seen (their memory is gone with them). Called after `start`, at most once."""
        ...

    def begin(self) -> None:
        """A case starts: called just before its first call. Or an oracle, where `judging`."""
        ...

    def end(self) -> Sequence[int | str]:
        """The case's plain run has ended, well or not: what was seen since `begin` for the first time in this process.

        Its parent calls it for a process that died in the case: what that had seen."""
        ...

    def total(self) -> int:
        """Of how many things this source can tell, 0 where that is not known."""
        ...
