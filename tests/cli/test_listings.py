import json

import pytest

from truekernel import checkers as checker_room
from truekernel import corpus
from truekernel.cli import main


def test_checkers(capsys):
    assert main(["checkers"]) == 0
    out = capsys.readouterr().out
    for name, checker in checker_room.checkers().items():
        assert any(line.startswith(f"{name} ") and checker.version in line for line in out.splitlines())
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


@pytest.mark.parametrize("name", ["reducton", "zzz*"])
def test_unknown_problem(name, capsys):
    assert main(["problems", name]) == 2
    assert f"unknown problem '{name}'" in capsys.readouterr().err
