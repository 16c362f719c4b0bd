"""A small library that is not there: a space for policies, and what executing its cases comes to."""

import random

from truekernel.fuzz.policy import State
from truekernel.fuzz.records import Call, Feedback, Operator, Outcome, ParameterSpec, TensorValue
from truekernel.fuzz.space import Space

X = ParameterSpec("x", "tensor")
N = ParameterSpec("n", "integer")


class Imagined:
    name = "imagined"
    feature_names = ("tensors", "integers")

    def __init__(self, families=("plain", "rich"), each=4):
        self._operators = [
            Operator(f"lib.{family}{number}", family, (X, N), features=(0.1, 0.1 * number), weight=1.0 + number)
            for family in families
            for number in range(each)
        ]

    def operators(self):
        return self._operators

    def samples(self):
        return {
            operator.name: (
                Call(operator.name, (TensorValue((3, 4)), 2)),
                Call(operator.name, (TensorValue((5,), "float64"), 1)),
            )
            for operator in self._operators
        }


def space(**options):
    return Space(Imagined(**options))


def feedback_of(case):
    """New functions come from integers of the family `rich` alone; a free case is refused."""
    if case.origin == "free":
        return Feedback(Outcome("refused", error="ValueError", message="no"), seconds=0.001)
    rich = case.calls[0].operator.startswith("lib.rich")
    return Feedback(Outcome("valid"), functions=tuple(range(60 if rich else 0)), seconds=0.001)


def play(policy, where, cases, seed=0, feedback=feedback_of):
    """The driver's loop: cases made, in order."""
    dice = random.Random(seed)
    state = State()
    made = []
    for _ in range(cases):
        case = where.build(policy, state, dice)
        got = feedback(case)
        state.recent.append(got)
        state.executed += 1
        where.learn(got, case)
        policy.learn(got)
        made.append(case)
    return made


def share_rich(cases):
    return sum(case.calls[0].operator.startswith("lib.rich") for case in cases) / len(cases)
