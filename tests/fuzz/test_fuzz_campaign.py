"""A whole run in one process: what it keeps, what a kill leaves, how it goes on."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from library_of_controls import install

from truekernel.cli import main
from truekernel.errors import BadInputError, RunDirectoryError, UnknownNameError
from truekernel.fuzz import campaign, libraries
from truekernel.fuzz.campaign import run_fuzz, stored_findings
from truekernel.fuzz.options import FuzzOptions
from truekernel.fuzz.replaying import load_findings
from truekernel.fuzz.worker import work
from truekernel.store import Store


class Here:
    """A pool that works in this process; messages go through JSON as those of others do."""

    def __init__(self, workers):
        self.workers = workers

    def run(self, name, jobs):
        assert name == campaign.WORK
        for number, job in enumerate(jobs):
            for message in work(json.loads(json.dumps(job))):
                yield number, json.loads(json.dumps(message))


@pytest.fixture
def options(monkeypatch, tmp_path):
    library = install(monkeypatch)
    monkeypatch.setattr(libraries, "load", lambda name: library)
    monkeypatch.setattr(campaign, "LocalPool", Here)

    def made(**changes):
        return FuzzOptions(
            **{
                "library": "torch",
                "run_dir": tmp_path / "run",
                "budget": 12.0,
                "coverage": (),
                "operators": ("crash", "imprecise", "honest"),
                "knowledge": False,
            }
            | changes
        )

    return made


def test_what_is_dropped_is_counted_and_filed(options):
    result = run_fuzz(options(operators=("faulty_here_only", "times_nothing"), budget=20.0, triage=True))
    assert not result.findings
    assert result.counts["dropped script passes"] >= 1
    assert result.counts["extreme values"] >= 1
    store = Store.open(options().run_dir)
    try:
        assert {record["why"] for _, record in store.items("unconfirmed")} <= {"script passes", "not again"}
        assert any("times_nothing" in mark for mark, _ in store.items("extreme"))
    finally:
        store.close()


def test_a_run_finds_what_is_wrong_and_nothing_else(options):
    result = run_fuzz(options(budget=30.0))
    found = {(finding.operator.rsplit(".", 1)[1], finding.kind) for finding in result.findings}
    assert ("crash", "crash") in found
    assert ("imprecise", "mismatch") in found
    assert all(name != "honest" for name, _ in found)
    assert len({finding.key for finding in result.findings}) == len(result.findings)
    assert all(finding.reproduced == 3 for finding in result.findings)
    assert result.progress.executed > 5


def test_a_kill_loses_no_finding_and_a_resume_goes_on(options, monkeypatch):
    class Killed(Here):
        def run(self, name, jobs):
            for number, message in super().run(name, jobs):
                yield number, message
                if "finding" in message:
                    raise KeyboardInterrupt

    monkeypatch.setattr(campaign, "LocalPool", Killed)
    with pytest.raises(KeyboardInterrupt):
        run_fuzz(options(operators=("crash",)))
    before = stored_findings(options().run_dir)
    assert len(before) == 1
    monkeypatch.setattr(campaign, "LocalPool", Here)
    result = run_fuzz(options(operators=("crash",), budget=1.0, resume=True))
    assert [finding.key for finding in result.findings] == [before[0].key]
    assert result.fresh == ()
    again = run_fuzz(options(operators=("crash",), budget=0.5, resume=True))
    store = Store.open(options().run_dir)
    assert dict(store.items("state"))["0"]["epoch"] == 1
    store.close()
    assert len(again.findings) == 1


def test_a_resume_with_other_options_is_refused(options):
    run_fuzz(options(operators=("honest",), budget=0.3))
    with pytest.raises(BadInputError, match="was started with operators"):
        run_fuzz(options(operators=("crash",), resume=True))
    with pytest.raises(RunDirectoryError, match="already holds a run"):
        run_fuzz(options(operators=("honest",)))


@pytest.mark.parametrize(
    ("changes", "error"),
    [({"budget": 0.0}, BadInputError), ({"workers": 0}, BadInputError), ({"policy": "luck"}, UnknownNameError), ({"tier": "all"}, UnknownNameError),
     ({"coverage": ("miles",)}, UnknownNameError), ({"operators": ("nothing*",)}, UnknownNameError), ({"most_calls": 7}, BadInputError), ({"weights": {"a": 0.0}}, BadInputError)],
)  # fmt: skip
def test_options_that_cannot_be_used_are_refused(options, changes, error):
    with pytest.raises(error):
        run_fuzz(options(**changes))
    assert not options().run_dir.exists()


def test_the_command_says_what_it_found_and_compares_with_a_baseline(options, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call = [
        "fuzz",
        "torch",
        "--ops",
        "crash",
        "--budget",
        "1s",
        "--coverage",
        "none",
        "--workers",
        "1",
        "--no-knowledge",
    ]
    assert main([*call, "--run", "one", "--json", "--scripts", "scripts", "--export-issue", "issues"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["findings"]) == 1
    assert len(list(Path("scripts").iterdir())) == len(list(Path("issues").iterdir())) == 1
    assert main([*call, "--run", "two", "--baseline", "one/findings.json"]) == 0
    Path("none.json").write_text('{"findings": []}')
    assert main([*call, "--run", "three", "--baseline", "none.json"]) == 1
    assert main(["fuzz", "replay", "one"]) == 0
    assert "1 fail as before" in capsys.readouterr().out
    assert load_findings(Path("one/findings.json")) == load_findings(Path("one"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fuzz", "torch", "--budget", "soon"], "give a time"),
        (["fuzz", "replay"], "replay what?"),
        (["fuzz", "torch", "extra"], "one word too many"),
        (["fuzz", "replay", "nowhere"], "does not exist"),
        (["fuzz", "torch", "--weight", "conv"], "give a glob and a number"),
        (["fuzz", "torch", "--baseline", "nowhere"], "does not exist"),
        (["fuzz", "nolibrary"], "unknown library"),
    ],
)
def test_a_wrong_call_gets_one_line(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    said = capsys.readouterr().err.strip()
    assert words in said
    assert "\n" not in said
