import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from synthetic_summary import make_summary

import truekernel.audit
from truekernel.audit.options import DEFAULT_CHECKERS, Progress
from truekernel.audit.summary import ReplayResult
from truekernel.cli import main
from truekernel.cli.progress import Lines, times


@pytest.fixture
def asked(monkeypatch):
    """Audits that take no time: what was asked for is kept, the answer is invented."""
    options = []

    def run_audit(given, progress):
        options.append(given)
        given.run_dir.mkdir(parents=True, exist_ok=True)  # as a real one does, for its store
        progress(Progress("mutants", 1, 4, 1.0, 3.0))
        return make_summary(per_rule=1)

    monkeypatch.setattr(truekernel.audit, "run_audit", run_audit, raising=False)
    monkeypatch.setattr(truekernel.audit, "summarise", lambda _: make_summary(per_rule=1), raising=False)
    return options


def test_options_reach_the_audit(asked, capsys):
    argv = "audit --checker kernelbench,truekernel --checker my.mod:fn --problems soft* --rules sync --rules warp --sample 40 --seed 3"
    assert main([*argv.split(), "--workers", "3", "--run", "here", "--resume"]) == 0
    (options,) = asked
    assert options.checkers == ("kernelbench", "truekernel", "my.mod:fn")
    assert (options.problems, options.rules) == (("soft*",), ("sync", "warp"))
    assert (options.sample, options.seed, options.workers, options.resume) == (40, 3, 3, True)
    assert options.run_dir == Path("here")


def test_lists_have_singular_and_plural_names(asked, capsys):
    assert main(["audit", "--checkers", "kernelbench", "--problem", "softmax", "--rule", "sync"]) == 0
    assert main(["audit", "--checker", "kernelbench", "--problems", "softmax", "--rules", "sync"]) == 0
    first, second = asked
    assert (first.checkers, first.problems, first.rules) == (second.checkers, second.problems, second.rules)
    assert (first.checkers, first.problems, first.rules) == (("kernelbench",), ("softmax",), ("sync",))


def test_a_wrong_key_of_pyproject_is_answered(asked, tmp_path, capsys):
    (tmp_path / "pyproject.toml").write_text("[tool.truekernel.audit]\nfail-ower = 0.1\n")
    assert main(["audit"]) == 2
    assert "did you mean fail-over" in capsys.readouterr().err
    (tmp_path / "pyproject.toml").write_text('[tool.truekernel.audit]\nfail_over = 0.1\nchecker = ["kernelbench"]\n')
    assert main(["audit"]) == 1
    assert asked[0].fail_over == 0.1


def test_defaults(asked, capsys):
    assert main(["audit"]) == 0
    (options,) = asked
    assert options.checkers == DEFAULT_CHECKERS and options.sample is None and options.workers >= 1
    captured = capsys.readouterr()
    assert captured.out.startswith("kernelbench@1e-4 (scaled) accepts ")
    assert "HTML report: runs/audit/report.html" in captured.err
    assert Path("runs/audit/report.html").read_text().startswith("<!doctype html>")


def test_json_is_one_document(asked, capsys):
    assert main(["audit", "--json", "--html", "page.html"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema_version"] == 1
    assert Path("page.html").exists()


def test_fail_over_decides_the_exit_code(asked, capsys):
    assert main(["audit", "--fail-over", "0.9"]) == 0
    assert main(["audit", "--fail-over", "0.1"]) == 1
    assert "over --fail-over 0.1: kernelbench@1e-2" in capsys.readouterr().err
    assert main(["report", "runs/audit", "--fail-over", "0.1"]) == 1
    assert main(["report", "runs/audit"]) == 0


def test_fail_over_never_passes_a_broken_checker(monkeypatch, capsys):
    monkeypatch.setattr(truekernel.audit, "summarise", lambda _: make_summary(per_rule=1, broken=True), raising=False)
    assert main(["report", "runs/audit", "--fail-over", "1"]) == 1
    assert "truekernel is broken: raised ZeroDivisionError: division by zero" in capsys.readouterr().err
    assert main(["report", "runs/audit"]) == 0


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["audit", "--sample", "0"], "--sample 0: give the number of mutants"),
        (["audit", "--sample", "-3"], "--sample -3"),
        (["audit", "--workers", "0"], "--workers 0"),
        (["audit", "--fail-over", "17"], "--fail-over 17"),
        (["report", "x", "--fail-over", "-1"], "--fail-over -1"),
    ],
)
def test_values_that_can_not_be_meant(argv, said, asked, capsys):
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
    assert not asked


def test_report_that_can_not_be_written_is_said(asked, capsys):
    Path("taken").write_text("")
    assert main(["audit", "--html", "taken/page.html"]) == 2
    assert "choose another --html path" in capsys.readouterr().err


@pytest.mark.parametrize(("same", "code"), [(True, 0), (False, 1)])
def test_replay_says_whether_it_is_the_same(same, code, monkeypatch, capsys):
    result = ReplayResult(
        mutant="abc", program="softmax_tiled", problem="softmax", diff="--- a\n+++ b\n-x\n+y", case_id="c", axes={"batch": 2},
        recipe="uniform", seed=5, schedule="random", schedule_seed=4, stored="ok, worst 9", replayed="ok, worst 9", same=same, wrong=True,
        worst=9.0, honest_worst=0.5, verdicts={"kernelbench@1e-2": "accepts"}, message="" if same else "other bits",
    )  # fmt: skip
    monkeypatch.setattr(truekernel.audit, "replay", lambda run, mutant: result, raising=False)
    assert main(["replay", "abc"]) == code
    out = capsys.readouterr().out
    assert "uniform, seed 5, batch=2, schedule random, seed 4" in out and "kernelbench@1e-2  accepts" in out
    assert ("The same as recorded." in out) is same
    assert main(["replay", "abc", "--json"]) == code
    assert json.loads(capsys.readouterr().out)["same"] is same


def test_plain_progress_says_start_end_and_something_between():
    out = io.StringIO()
    lines = Lines(Console(file=out, width=100))
    lines(Progress("planning", 0, 0, 0.0, None))
    assert not out.getvalue(), "bad input, found while planning, is one line"
    for done in range(101):
        lines(Progress("mutants", done, 100, done / 4, (100 - done) / 4 if done else None))
    said = out.getvalue().splitlines()
    assert said[0] == "mutants 1 of 100, 0 s, 25 s left", "what is refused before anything is done is one line too"
    assert said[-1] == "mutants 100 of 100, 25 s, 0 s left"
    assert said[1:-1] == ["mutants 41 of 100, 10 s, 15 s left", "mutants 81 of 100, 20 s, 5 s left"]


@pytest.mark.parametrize(
    ("seconds", "left", "text"),
    [(5, None, "5 s"), (65, 4.4, "1 min 5 s, 4 s left"), (7300, 3600, "2 h 1 min, 1 h 0 min left")],
)
def test_times(seconds, left, text):
    assert times(Progress("mutants", 1, 2, seconds, left)) == text
