import dataclasses
import json

import pytest

from truekernel.audit.device_comparison import compare, write
from truekernel.audit.records import CaseRecord, MutantRecord, ProblemRecord, SuiteEntry, Witness
from truekernel.errors import RunDirectoryError
from truekernel.model import Case, Configuration, Execution, MadeBy, Outcome, Site
from truekernel.report.devices import print_comparison
from truekernel.store import Store

GOOD = {"worst": 1.0, "nonfinite": 0.0, "unwritten": 0.0, "flat": 0.0, "rms": 0.1, "bias": 0.0}
CASE = Case.of("sum_dim", {"rows": 4, "columns": 8}, "uniform", 1)
CHECKERS = ["kernelbench"]


def execution(worst=1.0, status="ok", schedule="gpu", output="aa"):
    statistics = {**GOOD, "worst": worst, "mismatch_0.01_0.01": float(worst > 100), "mismatch_0.0001_0.0001": 0.0}
    good = status == "ok"
    return Execution(
        CASE.id, Configuration(schedule), Outcome(status), statistics if good else {}, output if good else ""
    )


def witness(status="ok", schedule="gpu"):
    return Witness(
        case_id=CASE.id,
        schedule=schedule,
        schedule_seed=1,
        fill="poison",
        why="worst",
        status=status,
        worst=1e6,
        honest_worst=1.0,
        honest_nonfinite=False,
        output_hash="aa",
        element=None,
        confirmed=True,
    )


def record(name, rule_class="index", rule="swap-index-axis", **more):
    fields = {"status": "ran", "executions": (execution(),), **more}
    return MutantRecord(
        id=name,
        program="sum_dim",
        problem="sum_dim",
        file="cu",
        made_by=(MadeBy(rule, rule_class, Site("cu", 0, 1, 1, 1), "x"),),
        diff="",
        **fields,
    )


def run(folder, records, checkers=CHECKERS):
    folder.mkdir()
    problem = ProblemRecord(
        name="sum_dim",
        family="reduction",
        linear=False,
        cases=(CaseRecord(id=CASE.id, axes=CASE.lengths, recipe=CASE.recipe, seed=CASE.seed),),
        suites={
            name: (SuiteEntry(case_id=CASE.id, schedule="gpu", schedule_seed=1, fill="poison"),) for name in checkers
        },
        vacuous=(),
        official_note={},
    )
    store = Store.create(folder, {"checkers": list(checkers)})
    store.put_many("problem", {"sum_dim": problem.document()})
    store.put_many("mutant", {r.id: r.document() for r in records})
    store.close()
    return folder


def compared(tmp_path, cpu, gpu):
    return compare(run(tmp_path / "cpu", cpu), run(tmp_path / "gpu", gpu))


def test_what_agrees_counts_and_bits_are_compared(tmp_path):
    other = dataclasses.replace(execution(), output_hash="bb")
    both = [record("a"), record("b", witness=witness())]
    found = compared(tmp_path, both, [both[0], both[1].model_copy(update={"executions": (other,)})])
    assert (found.mutants, found.agreement, found.witness_agreement) == (2, 1.0, 1.0)
    assert (found.executions, found.same_bits) == (2, 1)
    assert not found.disagreements


@pytest.mark.parametrize(
    ("cpu", "gpu", "kind"),
    [
        ({"host_differs": True}, {"witness": witness()}, "host differs"),
        ({"witness": witness(), "rule_class": "sync"}, {}, "synchronisation"),
        ({"witness": witness(schedule="reverse")}, {}, "synchronisation"),
        ({"witness": witness("out_of_bounds")}, {}, "stray access"),
        ({}, {"witness": witness("trap")}, "fault on the GPU"),
        ({"witness": witness("timeout")}, {}, "slow on the CPU"),
        ({"witness": witness(), "rule": "zeros-to-empty"}, {}, "uninitialised memory"),
        ({"witness": witness()}, {"survivor_confirmed": False}, "nondeterministic"),
        ({"witness": witness()}, {}, "rounding"),
        ({"witness": witness(), "executions": (execution(5000.0),)}, {}, "unexplained"),
        ({"status": "stillborn", "executions": ()}, {"witness": witness()}, "compiler"),
    ],
)
def test_each_disagreement_has_its_class(tmp_path, cpu, gpu, kind):
    rules = {k: cpu[k] for k in ("rule_class", "rule") if k in cpu}
    found = compared(tmp_path, [record("a", **cpu), record("b")], [record("a", **rules, **gpu), record("b")])
    assert [d.kind for d in found.disagreements] == [kind]
    apart = kind in ("synchronisation", "host differs")
    assert found.compared == (1 if apart else 2)
    assert found.agreement == (1.0 if apart else 0.5)


def test_duplicates_stand_for_what_they_repeat(tmp_path):
    cpu = [record("a", witness=witness()), record("b", status="duplicate", duplicate_of="a", executions=())]
    gpu = [record("a", witness=witness()), record("b", witness=witness())]
    assert compared(tmp_path, cpu, gpu).agreement == 1.0


def test_comparison_is_written_and_printed(tmp_path):
    from truekernel.cli.output import console

    found = compared(tmp_path, [record("a", witness=witness())], [record("a")])
    write(found, tmp_path / "comparison.json")
    assert json.loads((tmp_path / "comparison.json").read_text())["classes"] == {"rounding": 1}
    out = console()
    with out.capture() as printed:
        print_comparison(found, out)
    assert "agree on 0.0 % of 1 mutants" in printed.get()
    assert "swap-index-axis" in printed.get()


def test_runs_that_can_not_be_compared_are_refused(tmp_path):
    one = run(tmp_path / "one", [record("a")])
    with pytest.raises(RunDirectoryError, match="other checkers"):
        compare(one, run(tmp_path / "two", [record("a")], ["exact-official"]))
    with pytest.raises(RunDirectoryError, match="no mutant in common"):
        compare(one, run(tmp_path / "three", [record("b")]))
