import pytest
from synthetic_summary import make_summary

from truekernel.audit.scores import Interval, Rate, VacuousEntry
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
    assert lead is not None and lead.name == "kernelbench@1e-2"
    text = wording.headline(lead)
    assert text.startswith("kernelbench@1e-2 (scaled) accepts ")
    assert f"of {lead.miss.n:.0f} wrong kernels [" in text
    assert "rejects 0 of 126 right ones." in text


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


def test_replay_command_is_safe_to_paste():
    assert wording.replay_command("abc", "my runs/a;b") == "truekernel replay abc --run 'my runs/a;b'"


def test_audit_command_repeats_every_choice():
    summary = make_summary()
    run = summary.run.model_copy(update={"rules": ("sync",), "problems": ("soft*",), "sample": 40, "seed": 3})
    command = wording.audit_command(summary.model_copy(update={"run": run}))
    assert command.startswith("truekernel audit --checker kernelbench@1e-2 --checker kernelbench@1e-4")
    assert command.endswith("--problems 'soft*' --rules sync --sample 40 --seed 3 --run runs/demo")
