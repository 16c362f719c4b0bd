"""Honest variants widen a range until it clears a mutant, or all of them have run."""

import pytest

from truekernel.audit.honest_ranges import HonestRanges
from truekernel.execution.backend import NO_CEILING
from truekernel.model import Configuration, Execution, Outcome

REQUEST = ("case", Configuration())


def shown(worst, nonfinite=0.0, status="ok"):
    return Execution(*REQUEST, Outcome(status), {"worst": worst, "nonfinite": nonfinite})


def complete(ranges):
    return len(ranges._asked.get(REQUEST, ())) == len(ranges.builds)


@pytest.fixture
def ranges():
    """Three builds, of which set-up has run the first; the second strays furthest, the third is wrong there."""
    late = {"second": shown(3.0), "third": shown(1e6)}
    asked = []

    def execute(build, request):
        assert request == REQUEST
        asked.append(build)
        return [late[build]]

    made = HonestRanges(execute)
    made.add("first", [shown(1.0)])
    made.add("second", [])
    made.add("third", [])
    made.asked = asked
    return made


def test_what_the_first_program_clears_asks_no_other(ranges):
    why, honest = ranges.prove(shown(1.9))
    assert why is None and honest.worst == 1.0 and not ranges.asked and not complete(ranges)


def test_what_another_clears_is_cleared_and_asks_no_more(ranges):
    why, honest = ranges.prove(shown(5.0))
    assert why is None and honest.worst == 3.0 and ranges.asked == ["second"]


@pytest.mark.parametrize("mutant", [shown(6.5), shown(0.5, nonfinite=2.0)])
def test_a_proof_stands_on_all_builds_that_are_right_there_each_asked_once(ranges, mutant):
    for _ in range(2):
        why, honest = ranges.prove(mutant)
        assert why and honest.worst == 3.0 and not honest.nonfinite
    assert ranges.asked == ["second", "third"] and complete(ranges)


def test_a_fault_needs_no_honest_variant_and_its_range_does_not_depend_on_what_was_asked_before(ranges):
    fault = shown(0.0, status="out_of_bounds")
    before = ranges.prove(fault)
    ranges.prove(shown(6.5))
    assert before == ranges.prove(fault) and before[0] == "ends in out of bounds" and before[1].worst == 1.0


def test_the_ceiling_is_what_proves_nothing_yet(ranges):
    assert ranges.ceiling(REQUEST) == (2.0, False)
    assert ranges.prove(shown(2.0))[0] is None
    ranges.prove(shown(6.5))
    assert ranges.ceiling(REQUEST) == (6.0, False) and NO_CEILING > (1e308, True)
