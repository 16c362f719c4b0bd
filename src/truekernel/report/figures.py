"""The figures of the report that are drawn from several records at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from truekernel.audit.scores import CheckerScore, GainSplit, KillMatrix, ToleranceCurve, Vacuity, VacuousEntry
from truekernel.audit.summary import Counts, Summary
from truekernel.report import charts, wording


@dataclass(frozen=True, slots=True)
class Part:
    """A share of a whole with its legend. `css`: the class that colours it."""

    name: str
    amount: float
    css: str
    explanation: str


def fates(counts: Counts) -> tuple[Part, ...]:
    """Where the chosen mutants went; the amounts sum to `counts.chosen`."""
    return (
        Part("witnessed", counts.witnessed, "p-witnessed", "proven wrong by a replayable case: these are scored"),
        Part("masked", counts.masked, "p-masked", "quarantined: output differs, never by more than honest programs do"),
        Part("unobserved", counts.unobserved, "p-unobserved", "quarantined: bitwise the same on every case tried"),
        Part("identical", counts.identical, "p-identical", "same machine code and launches as the original: excluded"),
        Part(
            "duplicate",
            counts.duplicates,
            "p-duplicate",
            "same machine code and launches as another mutant: counted once",
        ),
        Part("stillborn", counts.stillborn, "p-stillborn", "did not compile, or asked for an impossible launch"),
        Part("host differs", counts.host_differs, "p-other", "behaviour that C++ on a CPU leaves open: not scored"),
        Part("infrastructure", counts.infrastructure, "p-other", "the machine failed: not scored"),
    )


def fate_bar(counts: Counts) -> Markup:
    """The chosen mutants as one divided bar."""
    return charts.stacked_bar([(part.name, part.amount, part.css) for part in fates(counts)])


def settling_chart(scores: Sequence[CheckerScore], colours: dict[str, int]) -> Markup | None:
    """Miss rates over growing samples, with their 95 % range; None when no checker has any."""
    drawn = [score for score in scores if score.settling and not score.broken]
    if not drawn:
        return None
    largest = max(point.high for score in drawn for point in score.settling)
    sizes = [point.n for score in drawn for point in score.settling]
    low, high = min(sizes), max(sizes)
    ticks = [low * 2**i for i in range(20) if low * 2**i < high * 0.8] + [high]
    axis = charts.XAxis(
        "witnessed mutants in the sample (log scale)",
        low,
        high,
        [(t, wording.count(t)) for t in ticks],
        logarithmic=True,
    )
    series = [
        charts.Series(
            score.title,
            [
                (
                    p.n,
                    p.mean,
                    f"{score.title}, {wording.count(p.n)} mutants: {wording.percent(p.mean)} [{p.low * 100:.1f}, {p.high * 100:.1f}]",
                )
                for p in score.settling
            ],
            f"c{colours[score.name]}",
            band=[(p.n, p.low, p.high) for p in score.settling],
        )
        for score in drawn
    ]
    return charts.line_chart("Miss rate as the sample grows", axis, series, y_title="miss rate", top=_ceiling(largest))


@dataclass(frozen=True, slots=True)
class CurveFigure:
    """One suite's two views: both rates over the tolerance, and one rate over the other."""

    suite: str
    over_tolerance: Markup
    trade_off: Markup


def curve_figure(curve: ToleranceCurve, titles: dict[str, str]) -> CurveFigure:
    """Detection and false rejection of one suite as the flat tolerance moves."""
    tolerances = [p.tolerance for p in curve.points]
    low, high = min(tolerances), max(tolerances)
    decades = range(math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9) + 1)
    ticks = [(10.0**d, f"1e{d}") for d in decades if low * 0.999 <= 10.0**d <= high * 1.001]
    axis = charts.XAxis("tolerance t in |o - r| ≤ t + t |r| (log scale)", low, high, ticks, logarithmic=True)
    marks = [
        (m.tolerance, titles.get(m.checker, m.checker))
        for m in curve.marks
        if low * 0.999 <= m.tolerance <= high * 1.001
    ]
    told = [
        f"t = {wording.tolerance(p.tolerance)}: detects {wording.percent(p.detection)}, rejects {wording.percent(p.false_rejection)} of right kernels"
        for p in curve.points
    ]
    over = charts.line_chart(
        f"Detection and false rejection over tolerance, {curve.suite}",
        axis,
        [
            charts.Series(
                "detection", [(p.tolerance, p.detection, t) for p, t in zip(curve.points, told, strict=True)], "detect"
            ),
            charts.Series(
                "false rejection",
                [(p.tolerance, p.false_rejection, t) for p, t in zip(curve.points, told, strict=True)],
                "reject",
            ),
        ],
        y_title="share of kernels",
        marks=marks,
    )
    return CurveFigure(curve.suite, over, _trade_off(curve, told))


def _trade_off(curve: ToleranceCurve, told: Sequence[str]) -> Markup:
    """Detection against false rejection, the tolerance moving along the line. Marked tolerances are written beside their points."""
    ordered = sorted(zip(curve.points, told, strict=True), key=lambda pair: -pair[0].tolerance)
    labels = []
    for mark in curve.marks:
        index = min(
            range(len(ordered)),
            key=lambda i: abs(math.log(ordered[i][0].tolerance) - math.log(mark.tolerance)),
            default=None,
        )
        if index is not None:
            labels.append((index, wording.tolerance(mark.tolerance)))
    widest = max((p.false_rejection for p in curve.points), default=0.0)
    right = max(_ceiling(widest), 0.05)
    axis = charts.XAxis(
        "right kernels rejected",
        0.0,
        right,
        [(right * i / 4, f"{right * i * 25:.0f}%" if right >= 0.2 else f"{right * i * 25:.1f}%") for i in range(5)],
    )
    points = [(p.false_rejection, p.detection, text) for p, text in ordered]
    return charts.line_chart(
        f"Detection against false rejection, {curve.suite}",
        axis,
        [charts.Series("trade-off", points, "detect", labels=labels)],
        y_title="wrong kernels detected",
        bottom=math.floor(min(p.detection for p in curve.points) * 5) / 5 if curve.points else 0.0,
    )


@dataclass(frozen=True, slots=True)
class Step:
    """A row of the gain's split."""

    name: str
    figure: str
    bar: Markup


def gain_steps(gain: GainSplit, titles: dict[str, str]) -> tuple[Step, ...]:
    """From the base's miss rate through both gains, by their mean over the two orders, to the improved one's."""
    largest = _ceiling(max(gain.base_miss, gain.improved_miss, gain.base_miss - gain.inputs_mean))
    after_inputs = gain.base_miss - gain.inputs_mean
    base, improved = titles.get(gain.base, gain.base), titles.get(gain.improved, gain.improved)
    return (
        Step(
            base,
            f"misses {wording.percent(gain.base_miss)}",
            charts.range_bar(0, gain.base_miss, "c0", largest=largest),
        ),
        Step(
            "other inputs",
            wording.points(-gain.inputs_mean),
            charts.range_bar(gain.base_miss, after_inputs, "gain", largest=largest),
        ),
        Step(
            "other tolerance",
            wording.points(-gain.tolerance_mean),
            charts.range_bar(after_inputs, gain.improved_miss, "gain", largest=largest),
        ),
        Step(
            improved,
            f"misses {wording.percent(gain.improved_miss)}",
            charts.range_bar(0, gain.improved_miss, "c2", largest=largest),
        ),
    )


@dataclass(frozen=True, slots=True)
class VacuousPair:
    """A (problem, checker) pair on which some trivial output passes, with all that pass at either size."""

    problem: str
    checker: str
    audit: tuple[VacuousEntry, ...]
    official: tuple[VacuousEntry, ...]
    unknown: frozenset[str]
    """The sizes at which it could not be computed."""


def vacuous_pairs(vacuity: Vacuity) -> tuple[VacuousPair, ...]:
    """The entries by pair, in the order of their first entries; at each size the one that passes with the most room comes first."""
    grouped: dict[tuple[str, str], list[VacuousEntry]] = {}
    for entry in vacuity.entries:
        grouped.setdefault((entry.problem, entry.checker), []).append(entry)

    unknown: dict[tuple[str, str], set[str]] = {}
    for gap in vacuity.gaps:
        unknown.setdefault((gap.problem, gap.checker), set()).add(gap.size)

    def at(entries: list[VacuousEntry], size: str) -> tuple[VacuousEntry, ...]:
        return tuple(sorted((e for e in entries if e.size == size), key=lambda e: e.margin))

    return tuple(
        VacuousPair(*pair, at(own, "audit"), at(own, "official"), frozenset(unknown.get(pair, ())))
        for pair, own in grouped.items()
    )


def shown_trivial(entries: Sequence[VacuousEntry]) -> VacuousEntry | None:
    """The trivial output that stands for all that pass: zeros where they do, else the one with the most room."""
    zeros = next((entry for entry in entries if entry.trivial == "zeros"), None)
    return zeros or min(entries, key=lambda entry: entry.margin, default=None)


@dataclass(frozen=True, slots=True)
class Gap:
    """Why a problem's vacuity could not be computed, and for which checkers."""

    problem: str
    size: str
    why: str
    checkers: tuple[str, ...]


def gaps(vacuity: Vacuity) -> tuple[Gap, ...]:
    """The gaps by problem and reason."""
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for gap in vacuity.gaps:
        grouped.setdefault((gap.problem, gap.size, gap.why), []).append(gap.checker)
    return tuple(Gap(*key, tuple(checkers)) for key, checkers in grouped.items())


def only(matrix: KillMatrix, checkers: Sequence[str]) -> KillMatrix:
    """The kill matrix with the columns of some checkers alone, without cases that nothing is known of: a callable says one thing of its whole suite."""
    kept = [
        number
        for number, column in enumerate(matrix.columns)
        if column.checker in checkers
        and (column.label == "all" or any(row.killed[number] is not None for row in matrix.rows))
    ]
    rows = [row.model_copy(update={"killed": tuple(row.killed[number] for number in kept)}) for row in matrix.rows]
    return KillMatrix(columns=tuple(matrix.columns[number] for number in kept), rows=tuple(rows) if kept else ())


@dataclass(frozen=True, slots=True)
class CaseLegend:
    """A checker's cases in words: (places, recipe) with equal neighbours together, such as ("1 to 5", "official")."""

    checker: str
    cases: tuple[tuple[str, str], ...]


def case_legends(matrix: KillMatrix) -> tuple[CaseLegend, ...]:
    """Which recipe stands at each place of the kill matrix, for every checker whose places have one."""
    grouped: dict[str, list[tuple[str, str, str]]] = {}
    for column in matrix.columns:
        if column.detail and column.label != "all":
            runs = grouped.setdefault(column.checker, [])
            if runs and runs[-1][2] == column.detail:
                runs[-1] = (runs[-1][0], column.label, column.detail)
            else:
                runs.append((column.label, column.label, column.detail))
    return tuple(
        CaseLegend(name, tuple((first if first == last else f"{first} to {last}", text) for first, last, text in runs))
        for name, runs in grouped.items()
    )


def colours(summary: Summary) -> dict[str, int]:
    """A colour number for each checker, by place; there are eight."""
    return {score.name: number % 8 for number, score in enumerate(summary.checkers)}


def _ceiling(share: float) -> float:
    """The next round share above, as the top of an axis."""
    for top in (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8):
        if share <= top:
            return top
    return 1.0
