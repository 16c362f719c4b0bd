import pytest

from truekernel.cases.drawn import ELEMENTS, OPERATIONS, drawn
from truekernel.cases.shapes import step_of, wide_length
from truekernel.cases.suite_shapes import suite_shapes
from truekernel.cases.witness import DRAWN_COUNT, witness_cases
from truekernel.corpus import problems, programs
from truekernel.execution.recorder import trace
from truekernel.source import kernel_signatures


def plain(problem, seed, count):
    return drawn(problem, seed, count, lambda _, wanted: wanted)


@pytest.mark.parametrize("problem", problems().values(), ids=lambda problem: problem.name)
def test_drawn_shapes_differ_are_small_and_keep_fixed_axes(problem):
    found = plain(problem, 7, DRAWN_COUNT)
    assert len({tuple(axes.items()) for axes in found}) == len(found) == DRAWN_COUNT
    for axes in found:
        assert problem.flops(axes) <= OPERATIONS
        for name, axis in problem.axes.items():
            step = step_of(axis)
            assert axes[name] % step == 0 if step else axes[name] == axis.audit
    assert plain(problem, 7, DRAWN_COUNT) == found != plain(problem, 8, DRAWN_COUNT)


def test_drawn_shapes_relate_axes_in_more_than_one_way():
    found = plain(problems()["attention"], 3, 40)
    assert (
        {axes["keys"] > axes["D"] for axes in found}
        == {axes["queries"] > axes["keys"] for axes in found}
        == {True, False}
    )
    assert max(axes["heads"] * axes["queries"] * axes["D"] for axes in found) <= ELEMENTS


@pytest.mark.parametrize("program", programs().values(), ids=lambda program: program.name)
def test_programs_can_be_launched_on_all_witness_cases_and_drawn_lengths_belong_to_no_suite(program):
    problem = problems()[program.problem]
    cases = witness_cases(problem)
    signatures = kernel_signatures(program.source)
    suites = suite_shapes(problem).values()
    for axes in {case.axes for case in cases}:
        assert trace(program.plan_source, signatures, problem, dict(axes)).launches
    for case in cases[-DRAWN_COUNT:]:
        for name, axis in problem.axes.items():
            used = {axis.audit, *axis.odd, wide_length(axis), *(axes[name] for axes in suites)}
            assert case.lengths[name] not in used or not step_of(axis)
