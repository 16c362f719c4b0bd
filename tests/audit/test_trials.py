import itertools
from dataclasses import replace

import pytest

from truekernel import checkers, corpus, mutation
from truekernel.audit import trials
from truekernel.audit.setup import FIRST, set_up
from truekernel.model import Configuration, Execution, Outcome


def complete(ranges, request):
    return len(ranges._asked.get(request, ())) == len(ranges.builds)


@pytest.fixture(scope="module")
def setup():
    program = corpus.programs()["mse_loss"]
    with set_up(corpus.problems()["mse_loss"], [program], checkers.resolve(["kernelbench"])) as ready:
        yield ready


@pytest.fixture(scope="module")
def mutants():
    rules = mutation.select(["precision"])
    return mutation.mutants(corpus.programs()["mse_loss"], rules)[:6]


def test_what_repeats_is_confirmed(setup, mutants):
    survivors = [r for r in trials.run_chunk(setup, "mse_loss", mutants, {}) if r.survivor_confirmed is not None]
    assert survivors
    assert all(record.survivor_confirmed for record in survivors)
    assert all(record.witness.confirmed for record in survivors if record.witness)


def test_what_does_not_repeat_is_not(setup, mutants, monkeypatch):
    monkeypatch.setattr(trials, "_differ", lambda *_: True)
    survivors = [r for r in trials.run_chunk(setup, "mse_loss", mutants, {}) if r.survivor_confirmed is not None]
    assert survivors
    assert not any(record.survivor_confirmed for record in survivors)


@pytest.mark.parametrize("own_plans", [False, True])
def test_groups_of_the_witness_search_hold_every_request_once(setup, mutants, monkeypatch, own_plans):
    groups = []

    def nothing(_library, _variant, _plans, requests, _series, *, ceilings):
        assert len(ceilings) == len(requests)
        groups.append(list(requests))
        return []

    monkeypatch.setattr(setup.stage, "execute", nothing)
    base = setup.bases["mse_loss"]
    build = trials.builds.Build(None, 0, replace(base.plans, digest="other") if own_plans else base.plans)
    for count in (0, 1, 2, 3, 8, len(setup.witness_requests)):
        groups.clear()
        wanted = setup.witness_requests[:count]
        assert trials._search(setup, base, build, wanted) == (None, [])
        assert [request for group in groups for request in group] == wanted
        assert all(groups) or not count
        assert len(groups) == (count.bit_length() + (count & (count - 1) > 0) if own_plans else min(count, 1))


def test_a_search_goes_on_behind_what_ended_its_group_and_proves_nothing(setup, monkeypatch):
    base, wanted, asked = setup.bases["mse_loss"], setup.witness_requests[:5], []

    def first_only(_library, _variant, _plans, requests, _series, *, ceilings):
        asked.append(list(requests))
        case_id, configuration = requests[0]
        return [Execution(case_id, configuration, Outcome("host_differs"))]

    monkeypatch.setattr(setup.stage, "execute", first_only)
    witness, tried = trials._search(setup, base, trials.builds.Build(None, 0, base.plans), wanted)
    assert witness is None and [(e.case_id, e.configuration) for e in tried] == wanted
    assert asked == [wanted[k:] for k in range(5)]


def test_costly_cases_are_for_the_faults_that_they_can_show(setup):
    cases = {case_id: p.case for case_id, p in setup.stage.prepared.items()}
    numeric, others = setup.search("precision"), setup.search("launch")
    assert [r for r in setup.witness_requests if r not in setup.costly] == [r for r in numeric if r not in setup.costly]
    only_numeric, only_others = set(numeric) - set(others), set(others) - set(numeric)
    assert {cases[case_id].recipe for case_id, _ in only_numeric} >= {"normal+300"}
    assert not only_others, "no block of this problem waits for another"
    assert all(c == Configuration() for _, c in only_numeric)
    assert set(numeric) | set(others) == set(setup.witness_requests)


def test_honest_variants_run_only_where_a_mutant_may_be_proved_wrong(setup):
    """And then they have a range like all others, which proves the mutant wrong or not."""
    unknown = [request for request in setup.witness_requests if not complete(setup.ranges, request)]
    assert len(unknown) > 50
    assert all(complete(setup.ranges, request) for request in (*setup.requests, *setup.witness_requests[:FIRST]))
    base = setup.bases["mse_loss"]
    build = trials.builds.Build(base.library, 0, base.plans)
    assert trials._search(setup, base, build, setup.witness_requests)[0] is None, (
        "the program as written proves nothing"
    )
    assert not [request for request in unknown if complete(setup.ranges, request)]
    (right,) = setup.stage.execute(base.library, 0, base.plans, unknown[:1])
    assert setup.ranges.prove(right)[0] is None and not complete(setup.ranges, unknown[0])
    wrong = replace(right, statistics={**right.statistics, "worst": 1e6})
    why, honest = setup.ranges.prove(wrong)
    assert why and complete(setup.ranges, unknown[0]) and 0 <= honest.worst < 200 and not honest.nonfinite


@pytest.mark.parametrize(("again", "proved"), [("timeout", True), ("ok", False)])
def test_running_out_of_time_proves_a_mutant_wrong_only_when_it_does_so_twice(setup, monkeypatch, again, proved):
    wanted, base, ends = setup.witness_requests[:1], setup.bases["mse_loss"], iter(["timeout", again, again])

    def late(_library, _variant, _plans, requests, _series=None, *, ceilings=None):
        nothing = {"worst": 0.0, "nonfinite": 0.0}
        return [Execution(case_id, c, Outcome(next(ends)), nothing) for case_id, c in requests]

    monkeypatch.setattr(setup.stage, "execute", late)
    witness, _ = trials._search(setup, base, trials.builds.Build(None, 0, base.plans), wanted)
    assert (witness is not None and witness.status == "timeout") == proved


class LikeGpu:
    """This machine's processors under a GPU's name: what is asked for is that of a GPU, what executes is not."""

    name = "cuda"
    sanitises = False
    fills = ("poison", "stale")

    def __init__(self, device):
        self._device = device

    def __getattr__(self, name):
        return getattr(self._device, name)

    def shared(self, *_, **__):
        return {}

    def by_tool(self, _programs):
        return []


@pytest.fixture
def gpu(setup, monkeypatch):
    execute = setup.stage.execute

    def without_bare(*arguments, bare=False, **more):
        return execute(*arguments, **more)

    monkeypatch.setattr(setup, "device", LikeGpu(setup.device))
    monkeypatch.setattr(setup.stage, "execute", without_bare)
    return setup


def test_witnesses_beside_the_suites_change_nothing(setup, mutants):
    compilation = trials.builds.compiled(setup, "mse_loss", mutants)
    for own in compilation.builds.values():
        suites, witnesses = trials._suites_and_witnesses(setup, own, setup.witness_requests)
        apart = [
            setup.stage.execute(own.library, own.variant, own.plans, setup.requests, setup.series(setup.requests)),
            setup.stage.execute(own.library, own.variant, own.plans, setup.witness_requests[: len(witnesses)]),
        ]
        assert [[(e.case_id, e.outcome.status, e.output_hash) for e in part] for part in (suites, witnesses)] == [
            [(e.case_id, e.outcome.status, e.output_hash) for e in part] for part in apart
        ]
        whole = len(witnesses) == len(setup.witness_requests)
        assert whole or setup.ranges.prove(witnesses[-1])[0] or witnesses[-1].outcome.status != "ok"
    trials.builds.drop(setup, compilation.builds)


def test_one_group_after_the_other_finds_the_same_witnesses(setup, mutants, monkeypatch):
    """As on a device that does not stop at a ceiling."""
    together = trials.run_chunk(setup, "mse_loss", mutants, {})
    monkeypatch.setattr(trials, "_heeded", lambda *_: None)
    monkeypatch.setattr(trials, "_group_end", lambda _s, _b, _o, start, count: min(count, max(1, 2 * start)))
    apart = trials.run_chunk(setup, "mse_loss", mutants, {})

    def seen(records):
        return [
            (r.id, r.quarantine, r.worst, r.witness and r.witness.model_dump(), [e.output_hash for e in r.executions])
            for r in records
        ]

    assert seen(together) == seen(apart) and any(r.witness for r in together)


def test_what_differs_from_run_to_run_is_repeated_and_its_kills_are_counted(mutants, gpu, monkeypatch):
    rejected = itertools.cycle([False, False, True])
    judged = trials._judged

    def every_other(setup, seen):
        verdicts = judged(setup, seen)
        return {name: "reject" if next(rejected) else "accept" for name in verdicts} if counting else verdicts

    def kills(*arguments):
        counting.append(True)
        try:
            return counted(*arguments)
        finally:
            counting.clear()

    counting, counted = [], trials._kills
    monkeypatch.setattr(trials, "_judged", every_other)
    monkeypatch.setattr(trials, "_kills", kills)
    monkeypatch.setattr(trials, "_differ", lambda *_: True)
    survivors = [r for r in trials.run_chunk(gpu, "mse_loss", mutants, {}) if r.survivor_confirmed is not None]
    assert survivors
    for record in survivors:
        assert record.survivor_confirmed is False
        assert all(of == trials.REPEATS and killed <= of for killed, of in record.repeats.values())
    assert any(0 < killed < of for record in survivors for killed, of in record.repeats.values())


def test_fault_that_only_the_bare_gpu_shows_takes_the_place_of_what_was_seen(setup):
    good, other = (
        Execution("a", Configuration(), Outcome("ok"), {}, "aa"),
        Execution("b", Configuration(), Outcome("ok"), {}, "bb"),
    )
    fault = Execution("b", Configuration(), Outcome("out_of_bounds"))
    assert trials._with_faults([good, other], [good, fault]) == ([good, fault], True)
    changed = Execution("a", Configuration(), Outcome("ok"), {}, "cc")
    assert trials._with_faults([good, other], [changed, other]) == ([good, other], False)
