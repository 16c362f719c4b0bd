"""Each program of the smaller families, executed on the CPU at one odd shape and held to float64."""

from collections.abc import Iterator

import pytest

from truekernel.cases import combinations, make_inputs
from truekernel.corpus import problems, programs
from truekernel.execution import simt
from truekernel.execution.recorder import trace
from truekernel.model import Case, Configuration
from truekernel.numerics import expect
from truekernel.source import kernel_signatures

FAMILIES = ("elementwise", "activation", "reduction", "arg_reduction", "scan", "loss")
PROBLEMS = problems()
PROGRAMS = {name: p for name, p in programs().items() if PROBLEMS[p.problem].family in FAMILIES}
SCALES = 8.0
CONFIGURATIONS = (Configuration(), Configuration(schedule="random"), Configuration())


@pytest.fixture(scope="module")
def server() -> Iterator[simt.Server]:
    with simt.Server() as running:
        yield running


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_right_and_repeatable(name: str, server: simt.Server) -> None:
    program, problem = PROGRAMS[name], PROBLEMS[PROGRAMS[name].problem]
    axes = combinations(problem)[0]
    plan = trace(program, kernel_signatures(program.source), problem, axes)
    library = simt.compile_single(program.source, plan.kernels, simt.Options())
    assert isinstance(library, simt.Library), library
    inputs = make_inputs(problem, Case.of(problem.name, axes, "normal", 7))
    server.define("case", plan, inputs, expect(problem, inputs, axes), mutates=problem.mutates)
    runs = server.run(library, 0, [("case", configuration) for configuration in CONFIGURATIONS]).executions
    server.release(library)
    library.close()
    assert [run.outcome.status for run in runs] == ["ok"] * len(CONFIGURATIONS)
    for run in runs:
        assert run.hazards == ()
        assert run.statistics["nonfinite"] == 0
        assert run.statistics["unwritten"] == 0
        assert run.statistics["worst"] <= SCALES
    assert runs[0].output_hash == runs[2].output_hash


def test_wrong_program_is_seen(server: simt.Server) -> None:
    """Without its factor 0.5, GELU is off by a factor of two: the comparison above is able to fail."""
    program, problem = PROGRAMS["gelu"], PROBLEMS["gelu"]
    source = program.source.replace("0.5f * x", "x")
    assert source != program.source
    axes = combinations(problem)[0]
    plan = trace(program, kernel_signatures(source), problem, axes)
    library = simt.compile_single(source, plan.kernels, simt.Options())
    assert isinstance(library, simt.Library), library
    inputs = make_inputs(problem, Case.of(problem.name, axes, "normal", 7))
    server.define("case", plan, inputs, expect(problem, inputs, axes))
    (run,) = server.run(library, 0, [("case", Configuration())]).executions
    server.release(library)
    library.close()
    assert run.statistics["worst"] > SCALES
