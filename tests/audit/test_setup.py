from dataclasses import replace

import pytest

from truekernel import checkers, corpus
from truekernel.audit.setup import set_up
from truekernel.errors import BadInputError

PROBLEM = "mse_loss"


def prepared_with(monkeypatch, **changes):
    """Set a problem up whose only program is a changed one."""
    program = replace(corpus.programs()["mse_loss"], **changes)
    monkeypatch.setattr(corpus, "programs", lambda: {program.name: program})
    return set_up(corpus.problems()[PROBLEM], [program], checkers.resolve(["truekernel"]))


def test_a_program_whose_launch_plan_fails_is_refused_in_one_line(monkeypatch):
    plan = "def launch(run, inputs, axes):\n    return run.empty(axes['no such axis'])\n"
    with pytest.raises(BadInputError, match="fails its gate") as caught:
        prepared_with(monkeypatch, plan_source=plan)
    assert "\n" not in str(caught.value)


def test_a_program_that_computes_something_else_is_refused(monkeypatch):
    source = corpus.programs()["mse_loss"].source
    changed = source.replace("const float d = prediction - target", "const float d = prediction + target")
    wrong = changed if changed != source else source.replace(" - ", " + ", 1)
    with pytest.raises(BadInputError, match=r"error scales|NaN|out_of_bounds"):
        prepared_with(monkeypatch, source=wrong)


def test_a_program_that_does_not_compile_is_refused(monkeypatch):
    with pytest.raises(BadInputError, match="fails its gate"):
        prepared_with(monkeypatch, source=corpus.programs()["mse_loss"].source.replace("float", "flaot", 1))
