"""What the corpus as a whole must hold, and what each problem and program promises."""

import functools
import re
from collections import Counter

import pytest
import torch

from truekernel.cases import make_inputs, shapes
from truekernel.corpus import problems, programs
from truekernel.execution.recorder import trace
from truekernel.model import FAMILIES, Case, LaunchPlan
from truekernel.model.lengths import lengths as shape_of
from truekernel.numerics.formats import TORCH_DTYPES
from truekernel.source import kernel_signatures, parse_cuda

PROBLEMS, PROGRAMS = problems(), programs()
each_problem = pytest.mark.parametrize("name", PROBLEMS)
each_program = pytest.mark.parametrize("name", PROGRAMS)


def plan_of(name: str, axes: dict[str, int]) -> LaunchPlan:
    program = PROGRAMS[name]
    return trace(program, kernel_signatures(program.source), PROBLEMS[program.problem], axes)


@functools.cache
def inputs_of(name: str, axes: tuple[tuple[str, int], ...]) -> dict[str, torch.Tensor]:
    return make_inputs(PROBLEMS[name], Case.of(name, dict(axes), "official", 11))


def small(name: str) -> dict[str, int]:
    """The legal odd shape with the fewest elements."""

    def elements(axes: dict[str, int]) -> int:
        return sum(torch.Size(shape_of(spec.shape, axes)).numel() for spec in PROBLEMS[name].tensors)

    return min((axes for axes in shapes(PROBLEMS[name]) if elements(axes)), key=elements)


def test_every_family_is_covered_and_counts_are_reached() -> None:
    assert {problem.family for problem in PROBLEMS.values()} == set(FAMILIES)
    assert len(PROBLEMS) >= 28
    assert len(PROGRAMS) >= 38
    traits = Counter(trait for program in PROGRAMS.values() for trait in program.traits)
    assert traits["half"] >= 4
    assert traits["atomics"] >= 4
    assert traits["multi-kernel"] >= 4


def test_every_problem_has_a_program_and_eight_have_two() -> None:
    count = Counter(program.problem for program in PROGRAMS.values())
    assert set(count) == set(PROBLEMS)
    assert sum(number >= 2 for number in count.values()) >= 8


@each_program
def test_source_parses_and_says_what_its_traits_say(name: str) -> None:
    program = PROGRAMS[name]
    assert not parse_cuda(program.source).errors
    plan = plan_of(name, PROBLEMS[program.problem].audit_axes())
    assert ("multi-kernel" in program.traits) == (len(plan.kernels) > 1)
    assert ("atomics" in program.traits) == (re.search(r"\batomic[A-Z]\w*\(", program.source) is not None)
    half = any(spec.dtype in ("float16", "bfloat16") for spec in PROBLEMS[program.problem].tensors)
    assert ("half" in program.traits) == half


@each_program
def test_plan_traces_at_every_shape(name: str) -> None:
    problem = PROBLEMS[PROGRAMS[name].problem]
    for axes in shapes(problem):
        plan = plan_of(name, axes)
        for number, spec in zip(plan.outputs, problem.outputs, strict=True):
            assert plan.buffers[number].shape == shape_of(spec.shape, axes)
        if 0 not in axes.values():
            assert plan.launches


@each_problem
def test_reference_keeps_dtype_and_shape(name: str) -> None:
    problem = PROBLEMS[name]
    axes = small(name)
    inputs = inputs_of(name, tuple(axes.items()))
    wide = {k: v.double() if v.is_floating_point() else v for k, v in inputs.items()}
    for outputs, real in ((problem.reference(inputs, axes), None), (problem.reference(wide, axes), torch.float64)):
        assert isinstance(outputs, tuple)
        for output, spec in zip(outputs, problem.outputs, strict=True):
            assert tuple(output.shape) == shape_of(spec.shape, axes)
            wanted = TORCH_DTYPES[spec.dtype]
            assert output.dtype == (real if real is not None and wanted.is_floating_point else wanted)


@each_problem
def test_reference_leaves_its_inputs_alone(name: str) -> None:
    problem = PROBLEMS[name]
    axes = small(name)
    inputs = {k: v.clone() for k, v in inputs_of(name, tuple(axes.items())).items()}
    before = {k: v.clone() for k, v in inputs.items()}
    problem.reference(inputs, axes)
    for key, tensor in before.items():
        if key not in problem.mutates:
            assert torch.equal(inputs[key], tensor)


@each_problem
def test_record_is_complete(name: str) -> None:
    problem = PROBLEMS[name]
    assert problem.summary
    assert problem.source
    assert all(axis.odd for axis in problem.axes.values() if axis.kind in ("reduction", "spatial"))
    assert all(axis.audit <= axis.official for axis in problem.axes.values())
    for axes in (problem.audit_axes(), problem.official_axes()):
        assert problem.flops(axes) > 0
        assert problem.bytes(axes) > 0
    if any(spec.kind == "index" for spec in problem.outputs):
        axes = problem.audit_axes()
        assert problem.ties is not None
        table = problem.ties(inputs_of(name, tuple(axes.items())), axes)
        assert table.dtype == torch.float64


@each_problem
def test_exact_integer_cases_are_exact_where_linear(name: str) -> None:
    problem = PROBLEMS[name]
    if not problem.linear:
        return
    axes = problem.audit_axes()
    inputs = make_inputs(problem, Case.of(name, axes, "integers", 3))
    wide = {k: v.double() if v.is_floating_point() else v for k, v in inputs.items()}
    for output, truth in zip(problem.reference(inputs, axes), problem.reference(wide, axes), strict=True):
        assert torch.equal(output.double(), truth.double())
