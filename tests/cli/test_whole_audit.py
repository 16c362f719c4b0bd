"""From the command line to a verdict and back: a small audit, its report, a replay."""

import json
import os
from pathlib import Path

import pytest

from truekernel.cli import main

CHECKS = """
import torch

def close(reference, candidate):
    return torch.allclose(candidate, reference, rtol=1e-3, atol=1e-3)

def everything(reference, candidate):
    return True

def raises(reference, candidate):
    raise KeyError("x")

def odd(reference, candidate):
    return "yes"
"""
NAMES = ("close", "everything", "raises", "odd")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a run of eight mutants under four callables and one of the package's checkers."""
    folder = tmp_path_factory.mktemp("audit")
    (folder / "whole_audit_checks.py").write_text(CHECKS)
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert main([*command(), "--html", "page.html"]) == 0
    finally:
        os.chdir(before)
    return folder


def command():
    argv = ["audit", "--problems", "hinge_loss", "--sample", "8", "--run", "run", "--checker", "exact-official"]
    return argv + [word for name in NAMES for word in ("--checker", f"whole_audit_checks:{name}")]


@pytest.fixture
def summary(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["report", "run", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def scores(summary):
    return {score["name"].rpartition(":")[2]: score for score in summary["checkers"]}


def test_callables_are_measured_or_marked_broken(summary):
    found = scores(summary)
    assert summary["complete"] and summary["counts"]["witnessed"] >= 4
    assert found["everything"]["miss"]["value"] > found["close"]["miss"]["value"]
    assert found["everything"]["false_rejection"]["hits"] == 0
    assert "raised KeyError" in found["raises"]["broken"] and "returned str" in found["odd"]["broken"]
    assert not found["close"]["broken"] and not found["exact-official"]["broken"]


def test_counts_add_up(folder, summary):
    counts = summary["counts"]
    assert counts["chosen"] == 8 == sum(counts[k] for k in ("stillborn", "identical", "duplicates", "unique"))
    assert (folder / "page.html").read_text().count('data-accepted="') == len(summary["survivors"])


def test_survivor_is_replayed(summary, capsys):
    survivor = next(s for s in summary["survivors"] if s["witness"]["status"] == "ok")
    assert main(["replay", survivor["id"], "--run", "run", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["same"] and result["wrong"] and result["mutant"] == survivor["id"]
    assert result["diff"] == survivor["diff"]


def test_unknown_mutant(summary, capsys):
    assert main(["replay", "zzzz", "--run", "run"]) == 2
    assert "unknown mutant 'zzzz'" in capsys.readouterr().err


def test_finished_run_resumes_to_the_same_summary(summary, capsys):
    assert main([*command(), "--resume", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    for document in (again, summary):
        document["run"] |= {"seconds": None}
    assert again == summary


def test_other_options_do_not_touch_the_run(folder, summary, capsys):
    before = (folder / "run" / "run.sqlite").stat().st_mtime_ns
    argv = command()
    argv[argv.index("8")] = "9"
    assert main([*argv, "--resume"]) == 2
    assert "was started with other options" in capsys.readouterr().err
    assert main(argv) == 2
    assert "already holds a run" in capsys.readouterr().err
    assert (folder / "run" / "run.sqlite").stat().st_mtime_ns == before


def test_fail_over(summary, capsys):
    assert main(["report", "run", "--fail-over", "0.5"]) == 1
    assert "whole_audit_checks:everything" in capsys.readouterr().err
