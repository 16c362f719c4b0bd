"""Exported candidates compute what their program computes, with weights as the reference draws them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from truekernel import corpus
from truekernel.audit.subjects import find_subject
from truekernel.cases import make_inputs
from truekernel.corpus.kernelbench import load
from truekernel.errors import BadInputError, PlanError
from truekernel.export import HOSTS, Subject, model, model_new
from truekernel.export.bound import bound_model_new
from truekernel.export.plan_data import plan_data, traced
from truekernel.export.weights import weights_of
from truekernel.model import Case

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from kernelbench_files import GOOD, write

SMALL = {"rows": 3, "features": 257}


def subject(name):
    return Subject.of(corpus.programs()[name])


def executed(text, **names):
    scope = dict(names)
    exec(compile(text, "exported.py", "exec"), scope)
    return scope


def test_a_candidate_on_the_cpu_gives_the_outputs_of_the_program():
    problem = corpus.problems()["softmax"]
    reference = executed(model(problem, SMALL))
    candidate = executed(model_new(subject("softmax_two_kernels"), problem, SMALL, host="cpu"))
    first, second = reference["get_inputs"](), reference["get_inputs"]()
    assert not torch.equal(first[0], second[0])
    wanted = reference["Model"]()(*first)
    assert torch.allclose(candidate["ModelNew"]()(*first), wanted, rtol=1e-5, atol=1e-7)


def test_a_mutant_differs_and_is_still_a_candidate():
    program = corpus.programs()["softmax_online"]
    problem = corpus.problems()["softmax"]
    broken = Subject("m", "mutant", "softmax", program.source.replace("/", "*", 1000), program.plan_source)
    assert broken.source != program.source
    given = make_inputs(problem, Case.of("softmax", SMALL, "official", 1))["x"]
    try:
        output = executed(model_new(broken, problem, SMALL, host="cpu"))["ModelNew"]()(given)
    except RuntimeError:
        return
    assert not torch.allclose(output, torch.softmax(given, 1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", sorted(corpus.programs()))
def test_every_program_can_be_exported_for_every_host(name):
    one = subject(name)
    problem = corpus.problems()[one.problem]
    axes = problem.audit_axes()
    data = plan_data(traced(one, problem, axes))
    for host in HOSTS:
        tree = ast.parse(model_new(one, problem, axes, host=host))
        names = {n.name for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)}
        assert "ModelNew" in names
        assert all(
            n == "ModelNew" or n.lower().startswith(("_tk", "tk")) for n in names
        )  # an evaluator's names stay its own
        source = (
            next(
                ast.literal_eval(node.value)
                for node in tree.body
                if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_tk_source"
            )
            if host != "cpu"
            else one.source
        )
        assert one.source in source
    exported = ast.parse(model_new(one, problem, axes))
    plan = next(
        ast.literal_eval(n.value)
        for n in exported.body
        if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "_tk_plan"
    )
    assert plan == data


def test_host_code_says_every_launch():
    problem = corpus.problems()["matmul"]
    text = model_new(subject("matmul_register_blocked"), problem, problem.official_axes(), host="load_inline")
    source = executed("_tk_source = " + text.split("_tk_source = ", 1)[1].split("\n_tk_name", 1)[0])["_tk_source"]
    assert source.count("cudaLaunchKernel(") == len(
        traced(subject("matmul_register_blocked"), problem, problem.official_axes()).launches
    )
    assert "torch::empty({2048LL, 4096LL}" in source
    assert "data_ptr()" in source


def test_weights_of_our_own_problems():
    problem = corpus.problems()["layer_norm"]
    found = {w.place: w for w in weights_of(problem, problem.audit_axes())}
    assert [found[0].how, found[1].how] == ["fill_(1.0)", "zero_()"]


def test_weights_follow_the_draws_of_a_problem_file(tmp_path):
    conv = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.unused = torch.nn.Linear(7, 5)
        del self.unused
        self.conv1 = torch.nn.Conv2d(3, 96, kernel_size=11, stride=4, padding=2)

    def forward(self, x):
        return self.conv1(x)

batch_size = 256

def get_inputs():
    return [torch.rand(batch_size, 3, 224, 224)]

def get_init_inputs():
    return []
"""
    loaded = load(write(tmp_path, {"50_Conv": conv}), seconds=30.0)
    problem = corpus.problems()["conv2d"]
    axes = problem.official_axes() | {"batch": 1}
    text = bound_model_new(subject("conv2d_direct"), problem, loaded.adapted["level1/50"], axes, host="cpu")
    candidate, file = executed(text), executed(conv)
    torch.manual_seed(42)
    mine = list(candidate["ModelNew"]().parameters())
    torch.manual_seed(42)
    theirs = list(file["Model"]().parameters())
    assert [tuple(p.shape) for p in mine] == [tuple(p.shape) for p in theirs]
    assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))


def test_computed_weights_are_refused(tmp_path):
    text = GOOD["4_Derived"].replace("torch.randn(width) * 0.5", "torch.randn(width).exp()")
    adapted = load(write(tmp_path, {"1_Derived": text}), seconds=30.0).adapted["level1/1"]
    assert adapted.description.initialisers is None


def test_bad_calls():
    problem = corpus.problems()["softmax"]
    with pytest.raises(BadInputError, match="--host tpu"):
        model_new(subject("softmax_online"), problem, SMALL, host="tpu")
    wrong = Subject(
        "x", "x", "softmax", subject("softmax_online").source, "def launch(run, inputs, axes):\n    return 1"
    )
    with pytest.raises(PlanError):
        model_new(wrong, problem, SMALL)
    with pytest.raises(BadInputError, match="not a problem"):
        import dataclasses

        model(dataclasses.replace(problem, name="other"), SMALL)


def test_a_candidate_without_a_gpu_says_what_is_missing(tmp_path):
    problem = corpus.problems()["softmax"]
    file = tmp_path / "candidate.py"
    file.write_text(model_new(subject("softmax_online"), problem, SMALL))
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "libcuda" in done.stderr or "CUDA" in done.stderr or "NVIDIA" in done.stderr


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_a_candidate_on_the_gpu_gives_the_outputs_of_the_program():
    problem = corpus.problems()["softmax"]
    candidate = executed(model_new(subject("softmax_two_kernels"), problem, SMALL))
    given = make_inputs(problem, Case.of("softmax", SMALL, "official", 1))["x"].cuda()
    assert torch.allclose(candidate["ModelNew"]()(given), torch.softmax(given, 1), rtol=1e-5, atol=1e-7)


def test_subjects_by_name():
    assert find_subject("softmax_online").problem == "softmax"
    with pytest.raises(BadInputError, match="unknown program"):
        find_subject("zzz")
