"""Run directories that were damaged, or made by another version, are refused in one line."""

from importlib.metadata import version

import pytest

from truekernel.audit import AuditOptions, replay, run_audit, summarise
from truekernel.audit.records import MutantRecord, ProblemRecord
from truekernel.errors import RunDirectoryError
from truekernel.store import Store

PROBLEM = ProblemRecord(
    name="mse_loss", family="loss", linear=False, cases=(), suites={}, vacuous=(), official_note={}
).document()
MUTANT = MutantRecord(
    id="abcdef0123", program="mse_loss_tree", problem="mse_loss", file="cu", made_by=(), diff="", status="stillborn"
).document()
META = {
    "tool_version": version("truekernel"),
    "own_programs": [],
    "checkers": ["truekernel"],
    "programs": [],
    "options": {"checkers": ["truekernel"], "problems": [], "rules": [], "sample": None, "seed": 0},
    "device": "cpu",
    "compiler": "clang",
    "machine": "",
    "versions": {},
    "started": "2000-01-01",
    "generated": 1,
    "merged": 0,
    "chosen": 1,
}


def stored(directory, *, meta=META, problems=None, mutants=None):
    store = Store.create(directory, meta)
    store.put_many("problem", {"mse_loss": PROBLEM} if problems is None else problems)
    store.put_many("mutant", {"abcdef0123": MUTANT} if mutants is None else mutants)
    store.close()
    return directory


def test_a_sound_run_is_read(tmp_path):
    assert summarise(stored(tmp_path)).counts.stillborn == 1


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        ({"problems": {}}, r"is damaged \(no record of problem mse_loss"),
        ({"problems": {"mse_loss": [1]}}, r"is damaged \(problem mse_loss"),
        ({"mutants": {"abcdef0123": {"id": 5}}}, r"is damaged \(mutant abcdef0123"),
        ({"meta": META | {"own_programs": 5}}, "is damaged"),
        ({"meta": META | {"own_programs": [{"name": "x"}]}}, "is damaged"),
        ({"meta": META | {"options": []}}, "is damaged"),
        ({"meta": META | {"chosen": "many"}}, "is damaged"),
        ({"meta": {k: v for k, v in META.items() if k != "machine"}}, r"made by another version.*'machine'"),
        ({"meta": META | {"programs": ["gone"]}}, r"made by another version.*'gone'"),
    ],
)
def test_reports_of_damaged_runs_say_what_is_wrong(tmp_path, parts, what):
    with pytest.raises(RunDirectoryError, match=what) as raised:
        summarise(stored(tmp_path, **parts))
    assert "\n" not in str(raised.value)


def test_replay_of_a_damaged_run(tmp_path):
    with pytest.raises(RunDirectoryError, match=r"is damaged \(no record of problem"):
        replay(stored(tmp_path / "a", problems={}), "abcdef")
    with pytest.raises(RunDirectoryError, match=r"is damaged \(mutant"):
        replay(stored(tmp_path / "b", mutants={"abcdef0123": 7}), "abcdef")


def test_a_start_that_failed_is_no_run_but_one_with_mutants_is(tmp_path, monkeypatch):
    class Failing:
        def run(self, work, jobs):
            raise RunDirectoryError("stopped here")
            yield

    options = {"problems": ("mse_loss",), "sample": 2}
    for seed in (1, 2):  # the second has another plan
        with pytest.raises(RunDirectoryError, match="stopped here"):
            run_audit(AuditOptions(tmp_path, ("truekernel",), seed=seed, **options), pool=Failing())
    store = Store.open(tmp_path)
    store.put_many("mutant", {"abcdef0123": MUTANT})
    store.close()
    with pytest.raises(RunDirectoryError, match="already holds a run"):
        run_audit(AuditOptions(tmp_path, ("truekernel",), seed=2, **options), pool=Failing())
