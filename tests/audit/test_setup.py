from dataclasses import replace

import pytest

from truekernel import checkers, corpus
from truekernel.audit import setup as setup_room
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
    with pytest.raises(BadInputError, match=r"'mse_loss' can't be run: .*mse_loss.py:2: no input") as caught:
        prepared_with(monkeypatch, plan_source=plan)
    assert "\n" not in str(caught.value)


def test_a_program_that_computes_something_else_is_refused(monkeypatch):
    source = corpus.programs()["mse_loss"].source
    changed = source.replace("const float d = prediction - target", "const float d = prediction + target")
    wrong = changed if changed != source else source.replace(" - ", " + ", 1)
    with pytest.raises(BadInputError, match=r"error scales|NaN|out_of_bounds"):
        prepared_with(monkeypatch, source=wrong)


def test_a_program_that_does_not_compile_is_refused(monkeypatch):
    with pytest.raises(BadInputError, match=r"'mse_loss' can't be run: .*mse_loss.cu:\d+:\d+: "):
        prepared_with(monkeypatch, source=corpus.programs()["mse_loss"].source.replace("float", "flaot", 1))


def test_cases_of_subnormals_that_a_right_program_flushes_are_left_out_and_no_others():
    problem = corpus.problems()["scale_bias_clamp"]
    whole = set_up(problem, [corpus.programs()["scale_bias_clamp"]], checkers.resolve(["truekernel"]))
    with whole:
        cases = {case_id: p.case for case_id, p in whole.stage.prepared.items()}
        recipes = {cases[case_id].recipe for case_id, _ in whole.witness_requests}
        assert "subnormal@0" in recipes
        lost = next(request for request in whole.witness_requests if cases[request[0]].recipe == "subnormal@0")
        other = whole.witness_requests[0]
        base = whole.bases["scale_bias_clamp"]
        executions = whole.stage.execute(base.library, 0, base.plans, [lost, other])
        broken = [replace(e, statistics={**e.statistics, "worst": 1e6}) for e in executions]
        flushed = setup_room._flushed(whole, broken)
        assert flushed == {lost[0]} and setup_room._flushed(whole, executions) == set()
        setup_room._leave_out(whole, flushed)
        left = {case_id for case_id, _ in whole.witness_requests}
        assert lost[0] not in left and other[0] in left


@pytest.mark.parametrize("clamped", [True, False])
def test_cases_on_which_a_bound_reference_differs_from_ours_are_left_out_and_no_others(clamped):
    """A reference that divides a row by its own norm gives NaN for a row of zeros; ours takes 1e-12 where the norm is smaller."""
    ours = corpus.problems()["l2_normalise"]

    def norm(inputs, least):
        return inputs["x"].square().sum(dim=1, keepdim=True).sqrt().clamp_min(least)

    problem = replace(ours, reference=lambda inputs, _: (inputs["x"] / norm(inputs, 1e-12 if clamped else 0.0),))
    with set_up(problem, [corpus.programs()["l2_normalise_rows"]], checkers.resolve(["truekernel"])) as whole:
        cases = {case_id: p.case for case_id, p in whole.stage.prepared.items()}
        asked = {case_id for case_id, _ in [*whole.requests, *whole.witness_requests]}
        lost = {cases[case_id].recipe for case_id in set(cases) - asked}
        small = {"sparse*20", "dust", "subnormal", "normal*1e-19"}
        assert lost == set() if clamped else small <= lost and "normal&parameters" not in lost
        assert len(asked) > 0.7 * len(cases)
