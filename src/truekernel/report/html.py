"""One HTML file with everything in it: no network, no time stamps, the same bytes for the same summary."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from truekernel.audit.scores import KillMatrix, Rate
from truekernel.audit.summary import Summary
from truekernel.errors import BadInputError, MachineError
from truekernel.model import RULE_CLASSES
from truekernel.report import charts, figures, glossary, hazards, wording
from truekernel.report.diff import diff_html

_PERCENT = "\u00a0%"


def html(summary: Summary) -> str:
    """The report as one self-contained page."""
    environment = Environment(
        loader=PackageLoader("truekernel.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "percent": _percent,
        "count": wording.count,
        "interval": wording.interval,
        "explained": wording.explained,
        "scales": wording.scales,
        "tolerance": wording.tolerance,
        "points": wording.points,
        "diff": diff_html,
        "breakable": _breakable,
    }
    environment.globals |= {"wording": wording, "glossary": glossary, "bar": charts.interval_bar}
    return environment.get_template("report.html.j2").render(**_context(summary, environment))


def write_html(summary: Summary, path: Path) -> None:
    """Write the page to `path`: a file whole or not at all, through links; what is no file (a device, a pipe) in place.

    The last folder of the path is made when it is missing. Raises BadInputError when the path can't be written, MachineError when the disk is full.
    """
    try:
        target = path.resolve()
        if target.is_dir():
            raise BadInputError(f"--html {path} is a directory: name a file")
        page = html(summary).encode()
        if target.exists() and not target.is_file():
            target.write_bytes(page)
            return
        if not target.parent.is_dir():
            target.parent.mkdir()
        draft = target.with_name(f".{target.name[:100]}.{os.getpid()}.new")
        try:
            draft.write_bytes(page)
            if target.exists():
                draft.chmod(target.stat().st_mode & 0o777)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise MachineError(
                f"can't write {path}: {error.strerror}; the run is kept: `truekernel report RUN --html PATH` writes its page again"
            ) from error
        raise BadInputError(f"can't write {path}: {error.strerror}; choose another --html path") from error
    except RuntimeError as error:  # links in a circle
        raise BadInputError(f"can't write {path}: {error}; choose another --html path") from error


def _context(summary: Summary, environment: Environment) -> dict[str, Any]:
    colours = figures.colours(summary)
    titles = {score.name: score.title for score in summary.checkers}
    scored = [score for score in summary.checkers if not score.broken]
    lead = wording.leading(summary)
    matrix = figures.only(summary.kill_matrix, [score.name for score in scored])
    return {
        "summary": summary,
        "css": Markup(_text(environment, "report.css")),
        "script": Markup(_text(environment, "report.js")),
        "lead": lead,
        "headline": wording.headline(lead).replace(" %", _PERCENT) if lead else "No checker was asked for.",
        "beside": [sentence.replace(" %", _PERCENT) for sentence in wording.beside(summary)],
        "colours": colours,
        "titles": titles,
        "scored": scored,
        "first": lead if lead in scored else next(iter(scored), None),
        "fates": figures.fates(summary.counts),
        "fate_bar": figures.fate_bar(summary.counts),
        "classes": [name for name in RULE_CLASSES if any(rule.rule_class == name for rule in summary.rules)],
        "groups": _groups(summary),
        "curves": [figures.curve_figure(curve, titles) for curve in summary.curves if len(curve.points) > 1],
        "settling": figures.settling_chart(summary.checkers, colours),
        "gain_steps": figures.gain_steps(summary.gain, titles) if summary.gain else (),
        "vacuous": figures.vacuous_pairs(summary.vacuity),
        "gaps": figures.gaps(summary.vacuity),
        "hazard_groups": (groups := hazards.by_mutant(summary.hazards)),
        "hazard_outcomes": hazards.outcomes(groups),
        "bases": glossary.bases(summary),
        "legends": figures.case_legends(matrix),
        "kills": matrix,
        "matrix_heads": _matrix_heads(matrix),
        "any_scaled": summary.scaled,
    }


def _groups(summary: Summary) -> list[dict[str, Any]]:
    """Miss rates by class, size of error, family, rule and problem as tables: one row a group, one cell a scored checker (None where it has no mutants).

    Rules and problems are many: those that the headline's checker misses most come first.
    """
    lead = wording.leading(summary)
    leading = (
        [score.name for score in summary.checkers if not score.broken].index(lead.name)
        if lead and not lead.broken
        else 0
    )
    tables = []
    for name, attribute in (
        ("class", "miss_by_class"),
        ("size of error", "miss_by_size"),
        ("family", "miss_by_family"),
        ("rule", "miss_by_rule"),
        ("problem", "miss_by_problem"),
    ):
        by_checker = [
            {group.name: group.rate for group in getattr(score, attribute)}
            for score in summary.checkers
            if not score.broken
        ]
        names = list(dict.fromkeys(group for rates in by_checker for group in rates))
        rows = [{"name": group, "rates": [rates.get(group) for rates in by_checker]} for group in names]
        if name in ("rule", "problem"):
            rows.sort(key=lambda row: _badness(row["rates"][leading]))
        if rows:
            shared = any(rate and "." in wording.count(rate.n) for row in rows for rate in row["rates"])
            tables.append({"name": name, "rows": rows, "shared": shared})
    return tables


def _badness(rate: Rate | None) -> float:
    """Sorts the highest rate first and what has none last."""
    return 1.0 if rate is None or rate.value is None else -rate.value


def _matrix_heads(matrix: KillMatrix) -> list[tuple[str, int]]:
    """Checkers above the kill matrix, with the number of their columns."""
    heads: list[tuple[str, int]] = []
    for column in matrix.columns:
        if heads and heads[-1][0] == column.checker:
            heads[-1] = (column.checker, heads[-1][1] + 1)
        else:
            heads.append((column.checker, 1))
    return heads


def _breakable(name: str) -> Markup:
    """A name that may go on in the next line between its parts."""
    return Markup("<wbr>").join(re.split(r"(?<=[:./_])(?=.)", name))


def _percent(share: float | None, *, digits: int = 1) -> str:
    """As `wording.percent`, without a line break before the sign."""
    return wording.percent(share, digits=digits).replace(" %", _PERCENT)


def _text(environment: Environment, name: str) -> str:
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]
