import io
import json
import re

import pytest
from rich.console import Console
from synthetic_summary import make_summary

from truekernel.audit.summary import SCHEMA_VERSION, Summary
from truekernel.report import json_document, print_summary, wording


def printed(summary, *, width=130, **options):
    out = io.StringIO()
    print_summary(summary, Console(file=out, width=width, highlight=False, markup=False, **options))
    return out.getvalue()


def test_plain_when_not_a_terminal():
    text = printed(make_summary(per_rule=1))
    assert "\x1b" not in text
    assert text.startswith("kernelbench@1e-4 (scaled) accepts ")
    assert "precision" in text and "truekernel replay " in text


def test_styled_on_a_terminal_but_not_with_no_color():
    assert "\x1b[1m" in printed(make_summary(per_rule=1), force_terminal=True)
    assert "\x1b[33m" not in printed(make_summary(per_rule=1), force_terminal=True, no_color=True)


def test_broken_checker_and_unfinished_run_are_said():
    text = printed(make_summary(per_rule=1, broken=True).model_copy(update={"complete": False}))
    assert "is broken: raised ZeroDivisionError" in text
    assert "--resume" in text


@pytest.mark.parametrize("width", [130, 80, 60])
def test_no_word_is_broken_at_any_width(width):
    summary = make_summary(per_rule=2)
    text = printed(summary, width=width)
    assert "…" not in text
    assert all(len(line) <= width for line in text.splitlines() if "truekernel replay" not in line)
    words = {word for score in summary.checkers for word in re.split(r"(?=[@-])| ", score.title)}
    assert words <= set(re.split(r"(?=[@-])|\s+|[,;:.]", text))
    for score in summary.checkers:
        assert wording.percent(score.miss.value) in text


@pytest.mark.parametrize("width", range(40, 120, 7))
def test_figures_keep_their_signs(width):
    lines = printed(make_summary(per_rule=2), width=width).split("Scores")[0].splitlines()
    assert not any(re.match(r"\s*%|[\d.]+\]", line) for line in lines)
    assert all(len(line) <= width for line in lines)


def test_narrow_terminals_say_what_is_left_out():
    assert "left out" not in printed(make_summary(per_rule=1), width=130)
    assert "For want of width left out:" in printed(make_summary(per_rule=1), width=60)


def test_long_names_become_letters():
    summary = make_summary(per_rule=1)
    name = "cmd@300:python my_evaluation_of_kernels.py {reference} {candidate}"
    own = summary.checkers[0].model_copy(update={"name": name, "title": name, "published": False, "users_own": True})
    text = printed(summary.model_copy(update={"checkers": (own, *summary.checkers[1:])}), width=80)
    assert f"  A  {name}" in text and "…" not in text


def test_sizes_of_error_have_a_table():
    text = printed(make_summary(per_rule=2))
    table = text[text.index("by size of error") :]
    assert table.index("fault") < table.index("NaN or infinity") < table.index("over 100") < table.index("under 5")


def test_zeros_stand_for_the_trivial_outputs_that_pass():
    summary = make_summary(per_rule=1)
    entry = summary.vacuity.entries[0]
    tighter = entry.model_copy(update={"trivial": "mean", "margin": entry.margin / 10})
    vacuity = summary.vacuity.model_copy(update={"entries": (tighter, *summary.vacuity.entries)})
    text = printed(summary.model_copy(update={"vacuity": vacuity}))
    assert (
        "zeros, 4,000 times inside" in text
        and "mean" not in text[text.index("Vacuous") : text.index("Wrong kernels that")]
    )
    mean_alone = vacuity.model_copy(update={"entries": (tighter,)})
    assert "mean, 40,000 times inside" in printed(summary.model_copy(update={"vacuity": mean_alone}))


def test_only_a_broken_checker_leaves_no_empty_tables():
    summary = make_summary(per_rule=1, broken=True)
    text = printed(summary.model_copy(update={"checkers": summary.checkers[-1:]}))
    assert text.startswith("truekernel could not be scored: raised ZeroDivisionError")
    assert "by class" not in text and "Scores" not in text and text.count("ZeroDivisionError") == 1


def test_json_document_reads_back():
    summary = make_summary(per_rule=1)
    text = json_document(summary)
    assert json.loads(text)["schema_version"] == SCHEMA_VERSION
    assert Summary.model_validate_json(text) == summary


def test_over_leaves_broken_checkers_out():
    summary = make_summary(per_rule=2, broken=True)
    assert "kernelbench@1e-2" in summary.over(0.05)
    assert summary.over(1.0) == ()
    alone = summary.model_copy(update={"checkers": summary.checkers[-1:]})
    assert alone.over(-1.0) == ()
