import os
from pathlib import Path

import pytest

from truekernel.corpus import load_program, problems, programs
from truekernel.errors import BadInputError, SourceError, UnknownNameError
from truekernel.model import FAMILIES

KERNEL = """
__global__ void double_it(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"""
PLAN = """
PROBLEM = "elu"
TRAITS = {"half"}
BACKENDS = ("simt",)

def launch(run, inputs, axes):
    raise SystemError("a plan is never executed by the loader")
"""
HOST = """
#include <cuda_runtime.h>
__global__ void elu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : expm1f(x[i]);
}
extern "C" void solve(const float* x, float* y, int B, int D) {
    int n = B * D;
    elu_kernel<<<(n + 127) / 128, 128>>>(x, y, n);
}
"""


def write(folder: Path, source: str, plan: str | None) -> Path:
    (folder / "mine.cu").write_text(source)
    if plan is not None:
        (folder / "mine.py").write_text(plan)
    return folder / "mine.cu"


def test_program_takes_its_constants_from_the_plan_without_executing_it(tmp_path: Path) -> None:
    program = load_program(write(tmp_path, KERNEL, PLAN))
    assert (program.name, program.problem, program.backends) == ("mine", "elu", ("simt",))
    assert program.traits == {"half"}
    assert program.source == KERNEL
    assert program.plan_source == PLAN
    assert load_program(tmp_path / "mine") == program


def test_traits_and_backends_have_defaults(tmp_path: Path) -> None:
    plan = "PROBLEM: str = 'elu'\nTRAITS: set[str] = set()\ndef launch(run, inputs, axes):\n    return None\n"
    program = load_program(write(tmp_path, KERNEL, plan))
    assert program.traits == frozenset()
    assert program.backends == ("simt", "cuda")


def test_problem_that_is_passed_wins(tmp_path: Path) -> None:
    assert load_program(write(tmp_path, KERNEL, PLAN), problem="gelu").problem == "gelu"


@pytest.mark.parametrize(
    ("plan", "error", "match"),
    [
        (PLAN.replace('"elu"', '"elo"'), UnknownNameError, "did you mean elu"),
        (PLAN.replace("PROBLEM", "OTHER"), BadInputError, "set PROBLEM in mine.py"),
        (PLAN.replace("def launch(", "def start("), BadInputError, "no function launch"),
        (PLAN.replace('{"half"}', "find_traits()"), SourceError, r"mine\.py:3:10: TRAITS must be a literal"),
        (PLAN.replace("def launch", "deff launch"), SourceError, r"mine\.py:6:\d+: invalid syntax"),
    ],
)
def test_bad_plan_is_refused_with_its_place(tmp_path: Path, plan: str, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        load_program(write(tmp_path, KERNEL, plan))


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"can't read .*absent\.cu: No such file"):
        load_program(tmp_path / "absent.cu")
    (tmp_path / "bytes.cu").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInputError, match="not UTF-8"):
        load_program(tmp_path / "bytes.cu")


def test_file_with_host_code_gets_a_plan_and_keeps_its_kernels(tmp_path: Path) -> None:
    program = load_program(write(tmp_path, HOST, None), problem="elu")
    assert "elu_kernel" in program.source
    assert "<<<" not in program.source
    assert "def launch(run, inputs, axes)" in program.plan_source


def test_text_that_is_not_cuda_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"mine\.cu:\d+:\d+: "):
        load_program(write(tmp_path, "Dear reader, this is a letter. It has ( no kernels } at all; you see?", PLAN))


def test_file_with_host_code_needs_a_problem(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="name one"):
        load_program(write(tmp_path, HOST, None))


def test_collections_are_copies_in_the_order_of_families() -> None:
    found = problems()
    order = [FAMILIES.index(problem.family) for problem in found.values()]
    assert order == sorted(order)
    assert all(name == problem.name for name, problem in found.items())
    found.clear()
    assert problems()
    named = programs()
    assert all(name == program.name and Path(program.path).stem == name for name, program in named.items())
    named.clear()
    assert programs()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("TRAITS = 5", "TRAITS must be a set or tuple of names"),
        ("TRAITS = [[1]]", "TRAITS must be a set or tuple of names"),
        ("BACKENDS = 7", "BACKENDS must be"),
        ('BACKENDS = ("metal",)', "some of simt, cuda"),
        ("PROBLEM = 5", "PROBLEM must be the name of a problem"),
        ('PROBLEM = ["elu"]', "PROBLEM must be the name of a problem"),
        ("TRAITS = {[]}", "must be a literal"),
        ("x = " + "-" * 5000 + "1", "nested too deeply"),
        ("x = '\0'", "mine.py:3:1: holds a NUL byte"),
    ],
)
def test_constants_of_a_plan_are_what_they_should_be(tmp_path, line, why):
    (tmp_path / "mine.cu").write_text("__global__ void f(float* x) { x[0] = 1; }\n")
    (tmp_path / "mine.py").write_text(f'PROBLEM = "elu"\n\n{line}\n\ndef launch(run, inputs, axes): pass\n')
    with pytest.raises(BadInputError) as raised:
        load_program(tmp_path / "mine.cu")
    assert why in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_is_no_file_is_refused_and_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe.cu")
    with pytest.raises(BadInputError, match="not a file"):
        load_program(tmp_path / "pipe.cu")
