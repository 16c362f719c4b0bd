import json
import re

import pytest

from truekernel import checkers as checker_room
from truekernel import corpus
from truekernel.cli import main
from truekernel.source import translate_solve


def test_checkers(capsys):
    assert main(["checkers"]) == 0
    out = capsys.readouterr().out
    for name, checker in checker_room.checkers().items():
        assert any(line.startswith(f"{name} ") and checker.version in line for line in out.splitlines())
    for name, members in checker_room.GROUPS.items():
        assert any(
            line.startswith(f"{name} ") and f"stands for {' and '.join(members)}" in line for line in out.splitlines()
        )
    assert main(["checkers", "--json"]) == 0
    assert [c["name"] for c in json.loads(capsys.readouterr().out)] == list(checker_room.checkers())


def test_problems_of_a_family_with_their_programs(capsys):
    assert main(["problems", "reduction", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    known = {name: problem for name, problem in corpus.problems().items() if problem.family == "reduction"}
    assert {p["name"] for p in found} == set(known)
    for problem in found:
        assert problem["programs"] == [p.name for p in corpus.programs().values() if p.problem == problem["name"]]
        assert {name: axis["audit"] for name, axis in problem["axes"].items()} == known[problem["name"]].audit_axes()


def test_problems_table_counts_what_it_lists(capsys):
    assert main(["problems"]) == 0
    out = capsys.readouterr().out.rstrip().splitlines()
    programs = corpus.programs()
    assert out[-1] == f"{len({p.problem for p in programs.values()})} problems, {len(programs)} programs"


def test_one_problem_in_detail(capsys):
    assert main(["problems", "cross_entropy"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "cross_entropy (loss)" and "KernelBench: level1/95" in lines
    assert "logits [B, C] float32 any drawn as uniform" in lines
    assert "targets [B] int64 whole numbers from 0, below C drawn as uniform" in lines
    assert "loss [] float32 value" in lines
    assert "C official 4096 audit 4096 reduction" in lines
    assert "programs: cross_entropy, cross_entropy_warp" in lines
    assert (
        "host function: void solve(const float* logits, const long long* targets, float* loss, int B, int C)" in lines
    )
    assert main(["problems", "cross_entropy", "--json"]) == 0
    (problem,) = json.loads(capsys.readouterr().out)
    assert problem["inputs"][1] == {
        "name": "targets", "shape": ["B"], "dtype": "int64", "domain": "whole numbers from 0, below C", "recipe": "uniform", "scale": "1",
    }  # fmt: skip
    assert problem["outputs"] == [{"name": "loss", "shape": [], "dtype": "float32", "kind": "value"}]


def test_a_name_of_problem_and_family_shows_both(capsys):
    assert main(["problems", "softmax"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("softmax (softmax)\n") and "The family softmax also has: log_softmax" in out


def test_the_shown_host_function_is_one_that_an_audit_takes(capsys):
    for problem in corpus.problems().values():
        assert main(["problems", problem.name]) == 0
        (shown,) = re.findall("^host function: (.*)$", capsys.readouterr().out, re.MULTILINE)
        text = f"__global__ void k(int n) {{}}\n{shown} {{\n    k<<<1, 32>>>(1);\n}}\n"
        plan = translate_solve(text, problem)
        assert all(f"inputs[{spec.name!r}]" in plan for spec in problem.tensors)
        assert all(f"axes[{name!r}]" in plan for name in problem.axes)


@pytest.mark.parametrize("name", ["reducton", "zzz*"])
def test_unknown_problem(name, capsys):
    assert main(["problems", name]) == 2
    assert f"unknown problem '{name}'" in capsys.readouterr().err
