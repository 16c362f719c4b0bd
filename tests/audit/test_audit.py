"""One small audit, end to end: run, resume, callables, replay, bad run directories."""

import json
import sqlite3
from pathlib import Path

import pytest
import torch

from truekernel.audit import AuditOptions, replay, run_audit, summarise
from truekernel.errors import BadInputError, RunDirectoryError, UnknownNameError
from truekernel.store import Store

CHECKERS = ("kernelbench", "kernelbench-verified", "exact-official", "truekernel")
OPTIONS = {"problems": ("mse_loss",), "sample": 24, "seed": 1}


def close(reference: torch.Tensor, candidate: torch.Tensor) -> bool:
    return torch.allclose(reference, candidate, atol=1e-2, rtol=1e-2)


def raises(reference: torch.Tensor, candidate: torch.Tensor) -> bool:
    raise ZeroDivisionError("a fault of the checker")


def answers_seven(reference: torch.Tensor, candidate: torch.Tensor) -> int:
    return 7


MINE = tuple(f"test_audit:{name}" for name in ("close", "raises", "answers_seven"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("audit") / "run"
    told = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        summary = run_audit(AuditOptions(directory, (*CHECKERS, *MINE), workers=1, **OPTIONS), told.append)
    return directory, summary, told


def comparable(summary):
    document = summary.model_dump(mode="json")
    for name in ("seconds", "started", "directory"):
        document["run"].pop(name)
    return json.dumps(document, sort_keys=True)


def test_every_mutant_is_accounted_for(run):
    _, summary, told = run
    counts = summary.counts
    assert counts.chosen == OPTIONS["sample"]
    assert counts.balanced
    assert summary.complete
    assert counts.witnessed > counts.unique / 2
    assert told[-1].done == told[-1].total == counts.chosen
    assert all(program.gate == "" for program in summary.programs if program.mutants)


def test_scores_tell_checkers_apart(run):
    _, summary, _ = run
    scores = {score.name: score for score in summary.checkers}
    assert list(scores)[:2] == ["kernelbench@1e-2", "kernelbench@1e-4"]
    assert scores["truekernel"].miss.hits <= scores["kernelbench@1e-2"].miss.hits
    for name in (*CHECKERS[1:], "kernelbench@1e-4"):
        assert scores[name].false_rejection.hits == 0, name
        assert scores[name].false_rejection.n > 5
        assert not scores[name].broken
    assert "(scaled)" in scores["kernelbench@1e-2"].title
    assert "(scaled)" not in scores["truekernel"].title


def test_a_callable_agrees_with_the_published_checker_of_its_rule(run):
    _, summary, _ = run
    scores = {score.name: score for score in summary.checkers}
    assert scores["test_audit:close"].miss.hits == scores["kernelbench@1e-2"].miss.hits
    assert scores["test_audit:close"].miss.n == scores["kernelbench@1e-2"].miss.n


def test_broken_callables_are_marked_and_the_audit_goes_on(run):
    _, summary, _ = run
    scores = {score.name: score for score in summary.checkers}
    assert "ZeroDivisionError" in scores["test_audit:raises"].broken
    assert "int" in scores["test_audit:answers_seven"].broken
    assert scores["test_audit:raises"].miss.hits == 0


def test_survivors_have_confirmed_witnesses_that_replay(run, monkeypatch):
    directory, summary, _ = run
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    assert all(s.witness.confirmed for s in summary.survivors)
    survivor = summary.survivors[0]
    again = replay(directory, survivor.id[:10])
    assert again.same, again.message
    assert again.wrong
    assert again.element == survivor.witness.element
    with pytest.raises(UnknownNameError):
        replay(directory, "nothing-like-it")


def test_a_quarantined_mutant_has_nothing_to_replay(run):
    directory, summary, _ = run
    for quarantined in summary.quarantined[:1]:
        with pytest.raises(BadInputError, match="no witness"):
            replay(directory, quarantined.id)


def test_resuming_half_a_run_gives_the_same_report(run, tmp_path):
    directory, summary, _ = run
    half = tmp_path / "half"
    store = Store.open(directory)
    meta = store.meta()
    meta.pop("format")
    copy = Store.create(half, meta)
    records = dict(store.items("mutant"))
    copy.put_many("problem", dict(store.items("problem")))
    copy.put_many("mutant", {key: records[key] for key in sorted(records)[::2]})
    store.close()
    copy.close()
    assert not summarise(half).complete
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        resumed = run_audit(AuditOptions(half, (*CHECKERS, *MINE), workers=2, resume=True, **OPTIONS))
    assert comparable(resumed) == comparable(summary)


def test_a_run_of_other_options_or_version_is_not_resumed(run, tmp_path):
    directory, _, _ = run
    with pytest.raises(RunDirectoryError, match="--resume"):
        run_audit(AuditOptions(directory, CHECKERS, **OPTIONS))
    with pytest.raises(RunDirectoryError, match="other options"):
        run_audit(AuditOptions(directory, ("truekernel",), resume=True, **OPTIONS))
    other = tmp_path / "other"
    Store.create(other, {"tool_version": "0.0.0", "plan": ""}).close()
    with pytest.raises(RunDirectoryError, match="made by version"):
        run_audit(AuditOptions(other, CHECKERS, resume=True, **OPTIONS))
    for look in (summarise, lambda place: replay(place, "0")):
        with pytest.raises(RunDirectoryError, match="made by version"):
            look(other)
    connection = sqlite3.connect(other / "run.sqlite")
    connection.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    connection.commit()
    connection.close()
    with pytest.raises(RunDirectoryError, match="format 99"):
        summarise(other)
