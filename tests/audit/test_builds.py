import itertools
import threading

import pytest

from truekernel import checkers, corpus, mutation
from truekernel.audit import builds, worker
from truekernel.audit.setup import set_up
from truekernel.trial.devices import Cpu


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_what_is_made_ahead_comes_in_order(count):
    assert list(builds.ahead(range(5), lambda n: n * n, count)) == [(n, n * n) for n in range(5)]
    assert list(builds.ahead([], lambda n: n, count)) == []


def test_no_more_than_that_is_made_ahead():
    begun = []
    made = builds.ahead(range(9), begun.append, 2)
    next(made)
    made.close()
    assert 0 in begun and max(begun) <= 2


def test_it_is_made_while_the_caller_is_busy():
    second = threading.Event()
    made = builds.ahead(range(3), lambda n: second.set() if n == 1 else None, 1)
    assert next(made) == (0, None)
    assert second.wait(10)


@pytest.mark.parametrize("count", [0, 2])
def test_an_error_reaches_the_caller_in_its_turn(count):
    made = builds.ahead([1, 0, 2], lambda n: 1 // n, count)
    assert next(made) == (1, 1)
    with pytest.raises(ZeroDivisionError):
        next(made)


class Ahead(Cpu):
    ahead = 2


@pytest.fixture(scope="module")
def setups():
    program, problem = corpus.programs()["mse_loss"], corpus.problems()["mse_loss"]
    checker = checkers.resolve(["exact-official"])
    with set_up(problem, [program], checker, Cpu()) as here, set_up(problem, [program], checker, Ahead()) as ahead:
        yield here, ahead


def test_compiling_ahead_changes_no_record(setups, monkeypatch):
    monkeypatch.setattr(worker, "CHUNK", 4)
    mutants = mutation.mutants(corpus.programs()["mse_loss"], mutation.select(["launch", "precision"]))[:14]
    known = {mutants[1].id: "", mutants[5].id: "abc"}

    def records(setup):
        chunks = [("mse_loss", chunk) for chunk in worker._chunks(mutants, {m.id for m in mutants})]
        return [sorted(message["records"].items()) for message in worker._mutants(setup, chunks, known)]

    def told(found):
        return [[(key, r["status"], r["code_hash"], r["duplicate_of"]) for key, r in part] for part in found]

    here, there = (records(setup) for setup in setups)
    assert told(here) == told(there)
    assert sum(map(len, here)) == len(mutants) - len(known)


def test_mutants_of_a_launch_plan_share_a_library_on_a_cpu(setups):
    setup = setups[0]
    mutants = mutation.mutants(corpus.programs()["mse_loss"], mutation.rules())
    planned = [m for m in mutants if m.file != "cu"][:8]
    others = [m for m in mutants if m.file == "cu"][:2]
    made = builds.compiled(setup, "mse_loss", [*planned, *others])
    kernels = {i: (made.plans[i].kernels, i if i in {m.id for m in others} else "") for i in made.builds}
    shared = {i: id(build.library) for i, build in made.builds.items()}
    assert 2 < len(set(shared.values())) == len(set(kernels.values())) < len(made.builds)
    for one, other in itertools.combinations(made.builds, 2):
        assert (shared[one] == shared[other]) == (kernels[one] == kernels[other])
    builds.drop(setup, made.builds)
