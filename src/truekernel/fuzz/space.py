"""The space of test cases: asks its questions one by one and builds a case from the answers.

A case is built call by call: operator, pattern, where its arguments come from (`choices.ORIGINS`), then their leaves. The space learns from feedback which
choices operators accept (`validity`), which a policy sees as the mask and the weights of constrained calls.
"""

from __future__ import annotations

import fnmatch
import random as randomness
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol

from truekernel.errors import UnknownNameError
from truekernel.fuzz import arguments, patterns
from truekernel.fuzz.choices import PATTERNS, VOCABULARY, Kind, Node, Options
from truekernel.fuzz.forms import Form, forms_of
from truekernel.fuzz.library import Library
from truekernel.fuzz.policy import Policy, State
from truekernel.fuzz.records import Call, Feedback, Operator, Reference, TensorValue, TestCase
from truekernel.fuzz.validity import Validity

Questions = Generator[tuple[Node, Options], int, Any]

CALLS_WEIGHTS = (0.86, 0.08, 0.03, 0.015, 0.01, 0.005)
PLAIN_SHARE = 0.93
"""Share of calls without a pattern, for a policy without an opinion."""
UNSAMPLED_WEIGHT = 0.02
"""Weight of an operator that no valid call is known of, relative to one with samples."""
ORIGIN_WEIGHTS = {"constrained": 0.91, "seed": 0.08, "free": 0.01}


class Experience(Protocol):
    """What is known of past bugs, as far as the space uses it."""

    def weight(self, operator: str) -> float:
        """How often to choose an operator, relative to 1."""
        ...

    def patterns(self, operator: str) -> Mapping[str, float]:
        """How often to try patterns with it, relative to 1, by name of `choices.PATTERNS`."""
        ...

    def options(self, kind: Kind, operator: str) -> Mapping[str, float]:
        """How often to choose options of a kind of node, relative to 1."""
        ...


class _Remembered:
    """Experience whose answers are kept: the space asks at every node."""

    def __init__(self, source: Experience) -> None:
        self.weight = source.weight
        self.patterns: Callable[[str], Mapping[str, float]] = cache(source.patterns)
        self.options: Callable[[Kind, str], Mapping[str, float]] = cache(source.options)


@dataclass(frozen=True, slots=True)
class SpaceOptions:
    """What the space may use. `weights`: by glob over operator names. `constraints`, `seeds`: whether these origins are open. `internal`: take operators that
    are not public too. `most_calls`: 1 to 6."""

    operators: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    constraints: bool = True
    seeds: bool = True
    internal: bool = True
    most_calls: int = 6


class Space:
    """All test cases of a library. `experience`: knowledge of past bugs, or None."""

    def __init__(
        self, library: Library, options: SpaceOptions | None = None, experience: Experience | None = None
    ) -> None:
        self.options = options or SpaceOptions()
        self.library = library
        self.feature_names = library.feature_names
        chosen = selected(library.operators(), self.options.operators, internal=self.options.internal)
        self._samples = library.samples() if self.options.constraints or self.options.seeds else {}
        self._forms: dict[str, list[Form]] = {}
        self.validity = Validity()
        self._operators = [
            replace(
                operator,
                weight=_weight(
                    operator, self.options.weights, experience, operator.name in self._samples or not self._samples
                ),
            )
            for operator in chosen
        ]
        self._experience = _Remembered(experience) if experience else None
        self._families = sorted({operator.family for operator in self._operators})
        self._by_family: dict[int, list[int]] = {}
        for number, operator in enumerate(self._operators):
            self._by_family.setdefault(self._families.index(operator.family), []).append(number)
        self._numbers = {operator.name: number for number, operator in enumerate(self._operators)}
        totals = {
            group: sum(self._operators[number].weight for number in members)
            for group, members in self._by_family.items()
        }
        self._family_options = Options(tuple(totals), tuple(totals.values()))
        self._operator_options = {
            group: Options(tuple(members), tuple(self._operators[number].weight for number in members))
            for group, members in self._by_family.items()
        }
        self._choices: list[tuple[str, str, str, str]] = []
        self._constrained: list[str] = []

    def operators(self) -> Sequence[Operator]:
        """Those that can be chosen, in the order of the kind `operator`."""
        return self._operators

    def vocabulary(self, kind: str) -> Sequence[str]:
        """All options of a kind of node. Raises KeyError for a kind that does not exist."""
        if kind == "family":
            return self._families
        if kind == "operator":
            return [operator.name for operator in self._operators]
        return VOCABULARY[kind]  # type: ignore[index]

    def forms(self, operator: str) -> list[Form]:
        """Forms that samples of an operator have."""
        if operator not in self._forms:
            self._forms[operator] = forms_of(operator, self._samples.get(operator, ()))
        return self._forms[operator]

    def build(self, policy: Policy, state: State, random: randomness.Random) -> TestCase:
        """One case, every question answered by `policy`; `state.operator`, `state.calls` and `state.choices` tell it how far the case is."""
        steps = self.questions(random, state)
        try:
            node, options = next(steps)
            while True:
                chosen = policy.choose(node, options, state)
                state.choices.append((node, chosen))
                node, options = steps.send(chosen)
        except StopIteration as done:
            case: TestCase = done.value
            return case

    def questions(self, random: randomness.Random, state: State) -> Generator[tuple[Node, Options], int, TestCase]:
        """The questions of one case; see `policy`. `random` draws what no policy decides: which sample of a form, and the seeds of values."""
        self._choices, self._constrained = [], []
        state.operator = None
        state.calls.clear()
        state.choices.clear()
        most = self.options.most_calls
        count = 1 + (yield Node("calls"), Options(tuple(range(most)), CALLS_WEIGHTS[:most]))
        origins = []
        for number in range(count):
            relation = "independent"
            if number:
                relation = VOCABULARY["relation"][(yield Node("relation", number), Options((0, 1, 2), (0.2, 0.3, 0.5)))]
            if relation != "same_operator" or state.operator is None:
                state.operator = yield from self._operator(number)
            call, origin = yield from self._call(state.operator, number, random)
            if relation == "chain":
                call = _chained(call, number, random)
            state.calls.append(call)
            origins.append(origin)
        return TestCase(self.library.name, tuple(state.calls), origins[0])

    def _operator(self, number: int) -> Generator[tuple[Node, Options], int, Operator]:
        group = yield Node("family", number), self._family_options
        chosen = yield Node("operator", number), self._operator_options[group]
        return self._operators[chosen]

    def _call(
        self, operator: Operator, number: int, random: randomness.Random
    ) -> Generator[tuple[Node, Options], int, tuple[Call, str]]:
        pattern = PATTERNS[(yield Node("pattern", number, learned=operator.name), self._pattern_options(operator))]
        forms = self.forms(operator.name)
        open_origins = [
            place
            for place, origin in enumerate(VOCABULARY["origin"])
            if origin == "free"
            or (forms and (self.options.constraints if origin == "constrained" else self.options.seeds))
        ]
        weights = tuple(ORIGIN_WEIGHTS[VOCABULARY["origin"][place]] for place in open_origins)
        origin = VOCABULARY["origin"][
            (yield Node("origin", number, learned=operator.name), Options(tuple(open_origins), weights))
        ]
        if origin == "free":
            call = yield from arguments.free(operator, number, forms[0].samples[0] if forms else None, random)
        else:
            places = tuple(range(len(forms)))
            form = forms[
                (
                    yield (
                        Node("form", number, learned=operator.name),
                        Options(places, tuple(1.0 + len(one.samples) for one in forms)),
                    )
                )
            ]
            sample = random.choice(form.samples)
            if origin == "seed":
                call = yield from arguments.mutated(sample, form, number, random)
            else:
                call, choices = yield from arguments.constrained(
                    sample, form, number, random, self.validity, self._experience
                )
                if pattern == "none":
                    self._choices += [(operator.name, *choice) for choice in choices]
                    self._constrained.append(operator.name)
        return patterns.applied(pattern, call, random), origin

    def _pattern_options(self, operator: Operator) -> Options:
        factors = self._experience.patterns(operator.name) if self._experience else {}
        caution = self.validity.caution(f"{operator.name}/pattern")
        share = (1.0 - PLAIN_SHARE) * 2.0 * (1.0 - caution) / (len(PATTERNS) - 1)
        weights = [max(share * factors.get(name, 1.0), 1e-4) for name in PATTERNS]
        weights[0] = PLAIN_SHARE
        return Options(tuple(range(len(PATTERNS))), tuple(weights))

    def learn(self, feedback: Feedback, case: TestCase) -> None:
        """What came of the case built last."""
        if feedback.duplicate or len(case.calls) > 1:
            return
        accepted = feedback.outcome.kind != "refused"
        if self._constrained:
            self.validity.learn([choice[1:] for choice in self._choices], accepted)
            self.validity.adjust(self._constrained[0], accepted)
        elif case.origin == "constrained":
            self.validity.adjust(f"{case.calls[0].operator}/pattern", accepted)


def selected(operators: Iterable[Operator], wanted: Sequence[str], *, internal: bool = True) -> list[Operator]:
    """Operators by globs over full names, names without the namespace, or families. Raises UnknownNameError for one that matches nothing."""
    everything = [operator for operator in operators if internal or operator.public]
    if not wanted:
        return everything
    found: dict[str, Operator] = {}
    for pattern in wanted:
        hits = [
            operator for operator in everything if any(fnmatch.fnmatchcase(name, pattern) for name in _names(operator))
        ]
        if not hits:
            raise UnknownNameError("operator", pattern, sorted({_names(operator)[1] for operator in everything}))
        found |= {operator.name: operator for operator in hits}
    return [operator for operator in everything if operator.name in found]


def _names(operator: Operator) -> tuple[str, str, str]:
    parts = operator.name.split(".")
    short = parts[-2] if ".ops." in operator.name and len(parts) > 2 else parts[-1]
    return operator.name, short, operator.family


def _weight(operator: Operator, weights: Mapping[str, float], experience: Experience | None, sampled: bool) -> float:
    weight = operator.weight * (1.0 if sampled else UNSAMPLED_WEIGHT)
    for pattern, factor in weights.items():
        if any(fnmatch.fnmatchcase(name, pattern) for name in _names(operator)):
            weight *= factor
    return weight * (experience.weight(operator.name) if experience else 1.0)


def _chained(call: Call, number: int, random: randomness.Random) -> Call:
    """The call with one tensor replaced by the result of the call before."""
    leaves = call.leaves()
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, TensorValue)]
    if not places:
        return call
    from truekernel.fuzz.forms import with_leaves

    leaves[places[0] if random.random() < 0.7 else random.choice(places)] = Reference(number - 1)
    return with_leaves(call, leaves)


def kinds() -> tuple[Kind, ...]:
    """All kinds of nodes, in a fixed order."""
    return ("family", "operator", *VOCABULARY)
