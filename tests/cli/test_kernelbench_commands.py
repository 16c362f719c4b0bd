"""`truekernel problems --kernelbench`, `truekernel export` and `--checker-cmd`."""

import ast
import json
import sys
from pathlib import Path

import pytest

from truekernel import corpus
from truekernel.cli import main
from truekernel.store import Store

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from kernelbench_files import HOSTILE, SOFTMAX, write


@pytest.fixture
def checkout(tmp_path):
    other = SOFTMAX.replace("torch.softmax", "torch.log_softmax")
    write(tmp_path, {"23_Softmax": SOFTMAX, "24_LogSoftmax": SOFTMAX, "26_Other": other})
    return write(tmp_path, {"1_Raises": HOSTILE["11_Raises"][0]}, level=2)


def test_problems_of_a_checkout(checkout, capsys):
    assert main(["problems", "--kernelbench", str(checkout), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    adapted = {entry["id"]: entry for entry in found["adapted"]}
    assert list(adapted) == ["level1/23", "level1/24", "level1/26"]
    bound = [p.name for p in corpus.programs().values() if p.problem == "softmax"]
    assert adapted["level1/23"]["programs"] == bound
    assert adapted["level1/23"]["axes"]["dim"]["kind"] == "reduction"
    assert [entry["id"] for entry in found["refused"]] == ["level2/1"]
    unbound = {entry["problem"]: entry["why"] for entry in found["not_bound"]}
    assert "compute different things" in unbound["log_softmax"]


def test_problems_of_one_level_as_text(checkout, capsys):
    assert main(["problems", "--kernelbench", str(checkout), "--level", "2"]) == 0
    out = capsys.readouterr().out
    assert "0 problems adapted" in out
    assert "refused level2/1 Raises: it raises ValueError: of all things" in out


@pytest.mark.parametrize("arguments", [["--kernelbench", "."], ["--level", "1"], ["--kernelbench", "missing"]])
def test_no_checkout(arguments, capsys):
    assert main(["problems", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "--kernelbench" in error


def test_export_a_program(tmp_path, capsys):
    file = tmp_path / "out" / "candidate.py"
    assert main(["export", "softmax_online", "--axes", "rows=3,features=9", "-o", str(file)]) == 0
    assert "softmax_online" in capsys.readouterr().err
    assert "ModelNew" in {n.name for n in ast.parse(file.read_text()).body if isinstance(n, ast.ClassDef)}
    assert main(["export", "softmax_online", "--as", "reference", "--axes", "rows=3"]) == 0
    assert "class Model(" in capsys.readouterr().out


def test_export_with_a_checkout(checkout, capsys):
    arguments = ["export", "softmax_online", "--kernelbench", str(checkout), "--host", "load_inline"]
    assert main(arguments) == 0
    assert "(4096, 393216)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nope"], "unknown program"),
        (["softmax_online", "--axes", "rows"], "NAME=LENGTH"),
        (["softmax_online", "--axes", "lines=3"], "NAME=LENGTH"),
        (["softmax_online", "--kernelbench", "nowhere"], "not a checkout"),
        (["layer_norm_warp", "--kernelbench", "nowhere"], "bound to no problem"),
        (["0123456789abcdef", "--run", "nowhere"], "nowhere"),
    ],
)
def test_bad_exports(arguments, why, capsys):
    assert main(["export", *arguments]) == 2
    assert why in capsys.readouterr().err


def test_an_audit_refuses_a_command_that_is_not_there(capsys):
    assert main(["audit", "--checker-cmd", "no_such_program_here {candidate}"]) == 2
    assert "no program 'no_such_program_here'" in capsys.readouterr().err


def one_mutant(run):
    """Arguments of an audit of a single mutant."""
    return ["--problems", "sum_dim", "--rules", "swap-add-sub", "--sample", "1", "--workers", "1", "--run", str(run)]


def test_an_audit_asks_commands_and_exports_what_it_ran(tmp_path, capsys):
    run = tmp_path / "run"
    arguments = one_mutant(run)
    commands = ["true {candidate_output}", "false {candidate_output}", "sh -c 'exit 7' {candidate_output}"]
    asked = [word for text in commands for word in ("--checker-cmd", text)]
    assert main(["audit", *asked, *arguments, "--json"]) == 0
    capsys.readouterr()
    store = Store.open(run)
    try:
        (key,) = store.keys("mutant")
        record = store.get("mutant", key)
    finally:
        store.close()
    accepts, rejects, broken = (f"cmd@300:{text}" for text in commands)
    assert record["accepted_by"] == [accepts]
    assert list(record["rejected_by"]) == [rejects]
    assert "status 7" in record["broken"][broken]
    assert main(["export", key[:10], "--run", str(run)]) == 0
    assert f"mutant {key}" in capsys.readouterr().out


def test_an_audit_asks_commands_that_judge_files(tmp_path, capsys):
    run = tmp_path / "run"
    finds, misses = "grep -q 'class ModelNew' {candidate}", "grep -q 'no such text' {candidate}"
    asked = [word for text in (finds, misses) for word in ("--checker-cmd", text)]
    arguments = one_mutant(run)
    assert main(["audit", *asked, *arguments, "--json"]) == 0
    scores = {score["name"]: score for score in json.loads(capsys.readouterr().out)["checkers"]}
    accepts, rejects = scores[f"cmd@300:{finds}"], scores[f"cmd@300:{misses}"]
    assert (accepts["miss"]["hits"], accepts["false_rejection"]["hits"], accepts["broken"]) == (1, 0, "")
    assert rejects["miss"]["hits"] == 0 and rejects["false_rejection"]["hits"] > 0
