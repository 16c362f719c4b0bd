import re

import pytest
from synthetic_summary import make_summary

from truekernel.audit.scores import Interval, Rate
from truekernel.report import charts, figures


def rate(value, low, high):
    return Rate(hits=value * 100, n=100, value=value, wilson=Interval(low=low, high=high))


def test_interval_bar_is_as_long_as_the_rate():
    text = charts.interval_bar(rate(0.25, 0.1, 0.4), 2)
    assert 'class="fill c2" width="25.00%"' in text
    assert 'x1="10.00%" x2="40.00%"' in text
    assert charts.interval_bar(Rate.over({}), 0) == ""


def test_interval_bar_stays_inside_its_cell():
    assert 'width="100.00%"' in charts.interval_bar(rate(0.9, 0.8, 1.0), 0, largest=0.5)


def test_stacked_bar_fills_the_whole():
    text = charts.stacked_bar([("a", 1, "x"), ("b", 0, "y"), ("c", 3, "z")])
    assert [float(w) for w in re.findall(r'width="([\d.]+)%"', text)] == [25.0, 75.0]


def test_line_chart_puts_points_where_they_belong():
    axis = charts.XAxis("t", 1e-4, 1.0, [(1e-2, "1e-2")], logarithmic=True)
    series = charts.Series("s", [(1e-4, 0.0, "low"), (1e-2, 0.5, "middle"), (1.0, 1.0, "high")], "c0")
    text = charts.line_chart("chart", axis, [series], y_title="share")
    dots = [tuple(map(float, dot)) for dot in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', text)]
    (x0, y0), (x1, y1), (x2, y2) = dots
    assert x1 == pytest.approx((x0 + x2) / 2) and y1 == pytest.approx((y0 + y2) / 2)
    assert x0 < x2 and y0 > y2


def test_names_in_charts_are_escaped():
    axis = charts.XAxis("<t>", 0, 1, [(0.5, "<b>")])
    text = charts.line_chart(
        "<c>", axis, [charts.Series("<s>", [(0, 0, "<p>")], "c0")], y_title="<y>", marks=[(0.5, "<m>")]
    )
    assert not re.search(r"<(t|b|c|s|p|y|m)>", text)


def test_fates_sum_to_the_chosen_mutants():
    counts = make_summary(per_rule=2).counts
    assert counts.balanced
    assert sum(part.amount for part in figures.fates(counts)) == counts.chosen
    assert not counts.model_copy(update={"witnessed": counts.witnessed - 1}).balanced


def test_gain_steps_join_base_and_improved():
    gain = make_summary(per_rule=3).gain
    assert gain.base_miss - gain.inputs_mean - gain.tolerance_mean == pytest.approx(gain.improved_miss)
    steps = figures.gain_steps(gain, {})
    assert [step.name for step in steps] == [
        "kernelbench@1e-2",
        "other inputs",
        "other tolerance",
        "kernelbench-verified",
    ]


def test_curve_marks_the_checkers_tolerances():
    summary = make_summary(per_rule=2)
    figure = figures.curve_figure(summary.curves[0], {"kernelbench@1e-2": "kernelbench@1e-2 (scaled)"})
    assert "kernelbench@1e-2 (scaled)" in figure.over_tolerance
    assert ">1e-2<" in figure.trade_off and ">1e-4<" in figure.trade_off


def test_labels_of_close_points_stay_apart():
    axis = charts.XAxis("x", 0, 1, [])
    series = charts.Series("s", [(0, 0.5, ""), (0, 0.51, "")], "c0", labels=[(0, "low"), (1, "high")])
    text = charts.line_chart("c", axis, [series], y_title="y")
    heights = {name: float(y) for y, name in re.findall(r'marktext" x="[\d.]+" y="([\d.]+)">(low|high)<', text)}
    assert heights["low"] - heights["high"] >= 13


def test_names_of_marks_meet_no_line():
    axis = charts.XAxis("t", 1e-8, 1.0, [], logarithmic=True)
    names = [(1e-4, "kernelbench@1e-4 (scaled)"), (1e-2, "kernelbench@1e-2 (scaled)"), (1e-3, "another (scaled)")]
    series = charts.Series("s", [(1e-8, 1.0, ""), (1.0, 1.0, "")], "c0")
    text = charts.line_chart("c", axis, [series], y_title="y", marks=names)
    lines = [
        tuple(map(float, line)) for line in re.findall(r'class="mark" x1="([\d.]+)" x2="[\d.]+" y1="([\d.]+)"', text)
    ]
    labels = re.findall(r'class="marktext" x="([\d.]+)" y="([\d.]+)" text-anchor="(start|end)">([^<]+)<', text)
    (frame,) = {float(y) for y in re.findall(r'polyline[^>]*points="[\d.]+,([\d.]+)', text)}
    assert len(lines) == len(labels) == 3
    for at, base, anchor, name in labels:
        left, right = (
            (float(at), float(at) + 6 * len(name)) if anchor == "start" else (float(at) - 6 * len(name), float(at))
        )
        assert float(base) < frame and left > 0 and right < charts.WIDTH
        assert not any(left < x < right and start < float(base) for x, start in lines), name


def test_labels_avoid_the_line():
    axis = charts.XAxis("x", 0, 1, [])
    down = charts.Series("s", [(0, 0.5, ""), (0.02, 0.44, ""), (1, 0.42, "")], "c0", labels=[(0, "1e-2")])
    text = charts.line_chart("c", axis, [down], y_title="y")
    ((left, base),) = re.findall(r'marktext" x="([\d.]+)" y="([\d.]+)">1e-2<', text)
    points = [tuple(map(float, p.split(","))) for p in re.search(r'points="([^"]+)"', text)[1].split()]
    _, (x2, y2), (x3, y3) = points
    height = y2 + (y3 - y2) * (float(left) - x2) / (x3 - x2)
    assert float(base) < height or float(base) - 11 > height


def test_matrix_leaves_out_cases_that_nothing_is_known_of():
    matrix = make_summary(per_rule=1).kill_matrix
    (name, *others) = dict.fromkeys(column.checker for column in matrix.columns)
    unknown = [column.checker == name and column.label != "all" for column in matrix.columns]
    rows = [
        row.model_copy(
            update={"killed": tuple(None if gone else v for v, gone in zip(row.killed, unknown, strict=True))}
        )
        for row in matrix.rows
    ]
    kept = figures.only(matrix.model_copy(update={"rows": tuple(rows)}), [name, others[0]])
    assert [column.label for column in kept.columns if column.checker == name] == ["all"]
    assert {column.checker for column in kept.columns} == {name, others[0]}
    assert all(len(row.killed) == len(kept.columns) for row in kept.rows)


def test_gaps_of_all_checkers_become_one():
    vacuity = make_summary(per_rule=1).vacuity
    gap = vacuity.gaps[0]
    more = vacuity.model_copy(update={"gaps": (gap, gap.model_copy(update={"checker": "other"}))})
    (one,) = figures.gaps(more)
    assert (one.problem, one.checkers) == (gap.problem, (gap.checker, "other"))


def test_vacuous_pairs_hold_all_that_passes():
    vacuity = make_summary(per_rule=1).vacuity
    pairs = figures.vacuous_pairs(vacuity)
    assert sum(len(pair.audit) + len(pair.official) for pair in pairs) == len(vacuity.entries)
    softmax = next(pair for pair in pairs if pair.problem == "softmax" and pair.checker == "kernelbench@1e-2")
    assert [len(softmax.audit), len(softmax.official)] == [1, 1]


def test_an_axis_of_one_value_has_a_place_for_it():
    axis = charts.YAxis("share", 0.0, 0.0)
    assert axis.at(0.0) == axis.at(1.0)
