import pytest
from synthetic_summary import make_summary

from truekernel.audit.scores import Interval, Rate, VacuousEntry
from truekernel.audit.summary import WitnessSummary, WorstElement
from truekernel.report import wording


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.1734, "17.3 %"), (0.0, "0.0 %"), (1.0, "100.0 %"), (0.0004, "0.04 %"), (0.00049, "0.05 %"), (None, "-")],
)
def test_percent(share, text):
    assert wording.percent(share) == text


@pytest.mark.parametrize(("value", "text"), [(1234, "1,234"), (12.5, "12.5"), (3.0, "3"), (2.99, "3")])
def test_count(value, text):
    assert wording.count(value) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.0327, "+3.3 points"), (-0.0327, "-3.3 points"), (-0.0, "0.0 points"), (0.0004, "0.0 points")]
)
def test_points(share, text):
    assert wording.points(share) == text


@pytest.mark.parametrize(("value", "text"), [(0.01, "1e-2"), (1e-4, "1e-4"), (0.0025, "2.5e-3"), (1.0, "1e0")])
def test_tolerance(value, text):
    assert wording.tolerance(value) == text


def test_shown_interval_reaches_over_both():
    rate = Rate(
        hits=1, n=4, value=0.25, wilson=Interval(low=0.05, high=0.6), bootstrap=Interval(low=0.1, high=0.7), macro=0.2
    )
    assert wording.shown(rate) == Interval(low=0.05, high=0.7)
    assert wording.interval(rate) == "[5.0, 70.0]"
    assert wording.shown(rate.model_copy(update={"bootstrap": None})) == rate.wilson


def test_headline_gives_both_rates():
    lead = wording.leading(make_summary())
    assert lead is not None and lead.name == "kernelbench@1e-4"
    text = wording.headline(lead)
    assert text.startswith("kernelbench@1e-4 (scaled) accepts ")
    assert f"of {lead.miss.n:.0f} wrong kernels [" in text
    assert "rejects 2 of 126 right ones." in text


def test_newest_era_leads_whatever_the_order():
    summary = make_summary()
    turned = summary.model_copy(update={"checkers": summary.checkers[::-1]})
    assert wording.leading(summary).name == "kernelbench@1e-4"
    assert wording.leading(turned).name == "kernelbench-verified"  # the first published one, which has one era
    gross, other = wording.beside(summary)
    assert gross.startswith("Of the ") and "grossly wrong ones" in gross
    assert other.startswith("kernelbench@1e-2 (scaled) accepts ")
    assert len(wording.beside(turned)) == 1


def test_a_users_own_checker_leads():
    summary = make_summary()
    own = summary.checkers[-1].model_copy(update={"name": "my.mod:fn", "title": "my.mod:fn", "users_own": True})
    with_own = summary.model_copy(update={"checkers": (*summary.checkers[:-1], own)})
    assert wording.leading(with_own).name == "my.mod:fn"
    bad = own.model_copy(update={"broken": "my.mod:fn raised KeyError: 'x'."})
    only_bad = summary.model_copy(update={"checkers": (*summary.checkers[:-1], bad)})
    assert wording.headline(wording.leading(only_bad)) == "my.mod:fn could not be scored: raised KeyError: 'x'."
    assert wording.beside(only_bad) == ()
    one_good = summary.model_copy(update={"checkers": (bad, own.model_copy(update={"name": "my.mod:good"}))})
    assert wording.leading(one_good).name == "my.mod:good"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "not finite"), (0.0, "0"), (0.1776, "0.18"), (45298.4, "45,298"), (5.617e6, "5.62e+06"), (1e-21, "1e-21")],
)
def test_scales(value, text):
    assert wording.scales(value) == text


def test_witness_in_words():
    place = WorstElement(output="y", index=(2, 7), got=1.5, truth=1.0)
    witness = WitnessSummary(
        case_id="c", axes={"n": 3}, recipe="normal", seed=1, schedule="gpu", schedule_seed=1, status="ok",
        why="worst error 1e+300 error scales; honest programs stay within 0", worst=None, honest_worst=0.0, element=place,
        size="over 100 error scales",
    )  # fmt: skip
    exact = wording.witness_words(witness)
    assert (
        exact
        == "y[2, 7] is 1.5, should be 1, not finite in error scales, as nothing may be off there; honest programs are exact"
    )
    far = witness.model_copy(update={"worst": 250.0, "honest_worst": 0.5})
    assert (
        wording.witness_words(far)
        == "y[2, 7] is 1.5, should be 1, 250 error scales off; honest programs stay within 0.50"
    )
    fault = witness.model_copy(update={"status": "out_of_bounds", "element": None})
    assert wording.witness_words(fault) == "ends in an access out of bounds"
    infinite = witness.model_copy(update={"why": "3 elements are NaN", "size": "NaN or infinity"})
    assert wording.witness_words(infinite).startswith("3 elements are NaN; y[2, 7] is 1.5")
    assert (
        wording.plain("an error is 1e+300 times what is allowed") == "an error is infinitely many times what is allowed"
    )


def test_headline_of_what_could_not_be_scored():
    broken = make_summary(broken=True).checkers[-1]
    assert wording.headline(broken) == "truekernel could not be scored: raised ZeroDivisionError: division by zero."
    unproven = broken.model_copy(update={"broken": "", "miss": Rate.over({})})
    assert "no wrong kernel was proven" in wording.headline(unproven)


def test_leading_checker_is_published_and_scored():
    summary = make_summary(broken=True)
    only_ours = summary.model_copy(update={"checkers": summary.checkers[-2:]})
    lead = wording.leading(only_ours)
    assert lead is not None and lead.name == "exact-official"
    assert wording.leading(summary.model_copy(update={"checkers": ()})) is None


def test_margin():
    entry = VacuousEntry(problem="softmax", checker="c", size="audit", trivial="zeros", margin=0.000254)
    assert wording.margin(entry) == "3,937 times inside"
    assert wording.margin(entry.model_copy(update={"margin": 0.5})) == "2.0 times inside"
    assert wording.margin(entry.model_copy(update={"margin": 0.0})) == "equals the reference"
    assert wording.margin(entry.model_copy(update={"margin": 1.0})) == "passes"
    assert wording.margin(entry.model_copy(update={"margin": 0.98})) == "just inside"


def test_replay_command_is_safe_to_paste():
    assert wording.replay_command("abc", "my runs/a;b") == "truekernel replay abc --run 'my runs/a;b'"


def test_audit_command_repeats_every_choice():
    summary = make_summary()
    run = summary.run.model_copy(update={"rules": ("sync",), "problems": ("soft*",), "sample": 40, "seed": 3})
    command = wording.audit_command(summary.model_copy(update={"run": run}))
    assert command.startswith("truekernel audit --checker kernelbench@1e-2 --checker kernelbench@1e-4")
    assert command.endswith("--problems 'soft*' --rules sync --sample 40 --seed 3 --run runs/demo")
    own = run.model_copy(
        update={
            "checkers": ("truekernel", "cmd@60:python eval.py {candidate}"),
            "programs": ("my kernels/a.cu",),
            "solves": "softmax",
            "device": "cuda",
        }
    )
    assert wording.audit_command(summary.model_copy(update={"run": own})).startswith(
        "truekernel audit --checker truekernel --checker-cmd 'python eval.py {candidate}' --checker-seconds 60 "
        "--program 'my kernels/a.cu' --solves softmax --problems 'soft*' --rules sync --sample 40 --device cuda"
    )
