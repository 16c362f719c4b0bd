import itertools

import pytest

from truekernel import checkers, corpus, mutation
from truekernel.audit import trials
from truekernel.audit.setup import set_up
from truekernel.model import Configuration, Execution, Outcome


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


def test_groups_of_the_witness_search_hold_every_request_once(setup, mutants, monkeypatch):
    groups = []

    def nothing(_library, _variant, _plans, requests, _series):
        groups.append(list(requests))
        return []

    monkeypatch.setattr(setup.stage, "execute", nothing)
    for count in (0, 1, 2, 3, 8, len(setup.witness_requests)):
        groups.clear()
        wanted, base = setup.witness_requests[:count], setup.bases["mse_loss"]
        assert trials._search(setup, base, trials.builds.Build(None, 0, None), wanted) == (None, [])
        assert [request for group in groups for request in group] == wanted
        assert all(groups) or not count


def test_costly_cases_are_for_the_faults_that_they_can_show(setup):
    cases = {case_id: p.case for case_id, p in setup.stage.prepared.items()}
    numeric, others = setup.search("precision"), setup.search("launch")
    assert [r for r in setup.witness_requests if r not in setup.costly] == [r for r in numeric if r not in setup.costly]
    only_numeric, only_others = set(numeric) - set(others), set(others) - set(numeric)
    assert {cases[case_id].recipe for case_id, _ in only_numeric} >= {"normal+300"}
    assert {c.schedule for _, c in only_others} >= {"reverse"} and all(c == Configuration() for _, c in only_numeric)
    assert set(numeric) | set(others) == set(setup.witness_requests)


def test_costly_cases_ask_honest_variants_only_when_a_mutant_differs_there(setup):
    """And then they have a range like all others, which proves the mutant wrong or not."""
    unknown = [request for request in setup.witness_requests if request not in setup.ranges]
    axes = [setup.stage.prepared[case_id].case.lengths for case_id, _ in unknown]
    assert {lengths["B"] * lengths["N"] > 60_000 or lengths["B"] > 500 for lengths in axes} == {True}
    assert all(request in setup.ranges for request in setup.requests)
    base = setup.bases["mse_loss"]
    build = trials.builds.Build(base.library, 0, base.plans)
    assert trials._search(setup, base, build, setup.witness_requests)[0] is None, (
        "the program as written proves nothing"
    )
    assert not [request for request in unknown if request in setup.ranges]
    found = setup.honest_range(unknown[0])
    assert 0 <= found.worst < 200 and not found.nonfinite and setup.ranges[unknown[0]] == found


@pytest.mark.parametrize(("again", "proved"), [("timeout", True), ("ok", False)])
def test_running_out_of_time_proves_a_mutant_wrong_only_when_it_does_so_twice(setup, monkeypatch, again, proved):
    wanted, base, ends = setup.witness_requests[:1], setup.bases["mse_loss"], iter(["timeout", again, again])

    def late(_library, _variant, _plans, requests, _series=None):
        nothing = {"worst": 0.0, "nonfinite": 0.0}
        return [Execution(case_id, c, Outcome(next(ends)), nothing) for case_id, c in requests]

    monkeypatch.setattr(setup.stage, "execute", late)
    witness, _ = trials._search(setup, base, trials.builds.Build(None, 0, None), wanted)
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


def test_first_witness_beside_the_suites_changes_nothing(setup, mutants):
    compilation = trials.builds.compiled(setup, "mse_loss", mutants)
    first = setup.witness_requests[:1]
    for own in compilation.builds.values():
        both = [
            setup.stage.execute(own.library, own.variant, own.plans, setup.requests, setup.series(setup.requests)),
            setup.stage.execute(own.library, own.variant, own.plans, first, [1]),
        ]
        together = trials._suites_and_first_witness(setup, own)
        assert [[(e.case_id, e.outcome.status, e.output_hash) for e in part] for part in together] == [
            [(e.case_id, e.outcome.status, e.output_hash) for e in part] for part in both
        ]
    trials.builds.drop(setup, compilation.builds)


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
