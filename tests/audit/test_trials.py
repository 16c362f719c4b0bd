import pytest

from truekernel import checkers, corpus, mutation
from truekernel.audit import trials
from truekernel.audit.setup import set_up


@pytest.fixture(scope="module")
def setup():
    program = corpus.programs()["mse_loss"]
    with set_up(corpus.problems()["mse_loss"], [program], checkers.resolve(["kernelbench"])) as ready:
        yield ready


@pytest.fixture(scope="module")
def mutants():
    rules = mutation.select(["precision"])
    return mutation.mutants(corpus.programs()["mse_loss"], rules)[:6]


def test_what_repeats_alone_is_confirmed(setup, mutants):
    survivors = [r for r in trials.run_chunk(setup, "mse_loss", mutants, {}) if r.survivor_confirmed is not None]
    assert survivors
    assert all(record.survivor_confirmed for record in survivors)
    assert all(record.witness.confirmed for record in survivors if record.witness)


def test_what_does_not_repeat_alone_is_not(setup, mutants, monkeypatch):
    monkeypatch.setattr(trials, "_differ", lambda *_: True)
    survivors = [r for r in trials.run_chunk(setup, "mse_loss", mutants, {}) if r.survivor_confirmed is not None]
    assert survivors
    assert not any(record.survivor_confirmed for record in survivors)
    assert {record.built for record in survivors} == {"alone"}
