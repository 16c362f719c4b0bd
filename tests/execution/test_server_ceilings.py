"""Statistics beyond an execution's ceiling end its series, in the child that runs it and in the server."""

from __future__ import annotations

import math

import pytest
from simt_cases import VADD, answers, compiled, edited, expect, plan_of, tensors

from truekernel.execution import simt
from truekernel.execution.backend import NO_CEILING
from truekernel.model import Configuration

KEYS = ["one", "two", "three", "four"]
"""The second asks for other numbers than the kernel gives."""


@pytest.fixture(scope="module")
def server():
    inputs = tensors()
    right = inputs["a"] + inputs["b"]
    with simt.Server() as running:
        for key in KEYS:
            running.define(key, plan_of(VADD), inputs, [expect(right + 1.0 if key == "two" else right)])
        yield running


def ran(server, library, series, ceilings):
    run = server.run(library, 0, [(key, Configuration()) for key in KEYS], series=series, ceilings=ceilings)
    assert {e.outcome.status for e in run.executions} <= {"ok", "out_of_bounds"}
    return [e.case_id for e in run.executions]


@pytest.mark.parametrize(
    ("series", "ceilings", "left"),
    [
        ([1] * 4, None, KEYS),
        ([1] * 4, [NO_CEILING] * 4, KEYS),
        ([1] * 4, [(2.0, False)] * 4, KEYS[:2]),
        ([1] * 4, [(1e300, False)] * 4, KEYS),
        ([2, 1, 2, 1], [(2.0, False)] * 4, KEYS[:3]),
        ([3, 1, 3, 1], [(2.0, False)] * 4, KEYS[:3]),
        ([0] * 4, [(2.0, False)] * 4, KEYS),
        ([1] * 4, [NO_CEILING, (math.inf, False), NO_CEILING, (2.0, False)], KEYS),
    ],
)
def test_a_ceiling_ends_the_series_of_what_goes_beyond_it_and_nothing_else(server, series, ceilings, left):
    assert ran(server, compiled(VADD), series, ceilings) == left


def test_not_a_number_where_the_truth_is_one_ends_a_series_unless_honest_programs_show_it_too(server):
    wrong = compiled(edited(VADD, {"a[i] + b[i]": "i == 3 ? NAN : a[i] + b[i]"}))
    assert ran(server, wrong, [1] * 4, [(math.inf, False)] * 4) == KEYS[:1]
    assert ran(server, wrong, [1] * 4, [(math.inf, True)] * 4) == KEYS


def test_what_is_left_out_changes_nothing_of_what_ran(server):
    requests = [(key, Configuration()) for key in KEYS]
    whole = server.run(compiled(VADD), 0, requests).executions
    part = server.run(compiled(VADD), 0, requests, series=[1] * 4, ceilings=[(2.0, False)] * 4).executions
    assert answers(part) == answers(whole)[:2]


def test_a_fault_behind_something_left_out_is_that_of_the_execution_that_ran(server):
    marked = tensors()
    marked["a"][0] = 123.0
    server.define("marked", plan_of(VADD), marked, [expect(marked["a"] + marked["b"])])
    library = compiled(edited(VADD, {"c[i] = ": "if (a[0] == 123.0f) *(volatile int*)0 = 1; else c[i] = "}))
    keys = ["two", "one", "marked", "four"]
    run = server.run(
        library, 0, [(key, Configuration()) for key in keys], series=[1, 1, 2, 4], ceilings=[(2.0, False)] * 4
    )
    assert [(e.case_id, e.outcome.status) for e in run.executions] == [
        ("two", "ok"),
        ("marked", "out_of_bounds"),
        ("four", "ok"),
    ]
