import io
import json

from rich.console import Console
from synthetic_summary import make_summary

from truekernel.audit.summary import SCHEMA_VERSION, Summary
from truekernel.report import json_document, print_summary


def printed(summary, **options):
    out = io.StringIO()
    print_summary(summary, Console(file=out, width=130, **options))
    return out.getvalue()


def test_plain_when_not_a_terminal():
    text = printed(make_summary(per_rule=1))
    assert "\x1b" not in text
    assert text.startswith("kernelbench@1e-2 (scaled) accepts ")
    assert "precision" in text and "truekernel replay " in text


def test_styled_on_a_terminal_but_not_with_no_color():
    assert "\x1b[1m" in printed(make_summary(per_rule=1), force_terminal=True)
    assert "\x1b[33m" not in printed(make_summary(per_rule=1), force_terminal=True, no_color=True)


def test_broken_checker_and_unfinished_run_are_said():
    text = printed(make_summary(per_rule=1, broken=True).model_copy(update={"complete": False}))
    assert "is broken: raised ZeroDivisionError" in text
    assert "--resume" in text


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
