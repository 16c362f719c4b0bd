"""Every checker accepts a right output and rejects wrong ones; what a published checker misses is part of what it is."""

import dataclasses

import pytest
import torch

from truekernel.cases import is_witness_seed, make_inputs, witness_cases
from truekernel.checkers import Judgement, accepts, checkers, resolve
from truekernel.checkers.external import ExternalChecker
from truekernel.checkers.vacuity import Prepared, official_cases, passing_trivials
from truekernel.errors import BadInputError, UnknownNameError
from truekernel.model import AxisSpec, Case, Configuration, Domain, Execution, Outcome, OutputSpec, Problem, TensorSpec
from truekernel.numerics import expect, lower_precision, statistics

NAMES = ["kernelbench@1e-2", "kernelbench@1e-4", "kernelbench-verified", "exact-official", "truekernel"]


def problem_of(name, function, *, n=40, m=48, linear=False, dtype="float32", official=None):
    return Problem(
        name=name,
        family="elementwise",
        summary="",
        axes={
            "M": AxisSpec(official or m, m, "batch", (1, 3, 17)),
            "N": AxisSpec(n, n, "reduction", (1, 7, 33)),
        },
        inputs=(TensorSpec("x", ("M", "N"), dtype, Domain(-1e4, 1e4)),),
        parameters=(TensorSpec("w", ("N",), dtype, Domain(-1e4, 1e4), official="ones"),),
        outputs=(OutputSpec("y", ("M", "N"), dtype),),
        reference=lambda inputs, axes: (function(inputs["x"], inputs["w"]),),
        flops=lambda a: 1.0 * a["M"] * a["N"],
        bytes=lambda a: 8.0 * a["M"] * a["N"],
        linear=linear,
    )


SCALED = problem_of("scaled", lambda x, w: x * w, linear=True)
RELU = problem_of("relu", lambda x, w: torch.relu(x) * w)
SOFTMAX = problem_of("softmax", lambda x, w: torch.softmax(x, 1), n=16384, m=2)
HALF = problem_of("half", lambda x, w: x * w, dtype="float16")


PREPARED = {}


def prepare(problem, case):
    if (problem.name, case.id) not in PREPARED:
        inputs = make_inputs(problem, case)
        PREPARED[problem.name, case.id] = Prepared(case, inputs, expect(problem, inputs, case.lengths))
    return PREPARED[problem.name, case.id]


def run(checker, problem, kernel, *, status="ok"):
    """The checker's verdict on `kernel(inputs, expected) -> outputs` over its whole suite."""
    suite = checker.suite(problem)
    executions = {}
    for case in suite:
        prepared = prepare(problem, case)
        inputs, expected = prepared.inputs, prepared.expected
        for configuration in checker.configurations(case):
            found = statistics(kernel(inputs, expected), expected, configuration.fill, checker.tolerances)
            executions[case.id, configuration] = Execution(
                case.id, configuration, Outcome(status), found if status == "ok" else {}
            )
    return accepts(checker, suite, executions)


def right(inputs, expected):
    return [want.published for want in expected]


def wrong(inputs, expected):
    return [want.published + 1 for want in expected]


def zeros(inputs, expected):
    return [torch.zeros_like(want.published) for want in expected]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("problem", [SCALED, RELU, SOFTMAX, HALF], ids=lambda p: p.name)
def test_a_right_output_is_accepted_and_a_wrong_one_rejected(name, problem):
    checker = checkers()[name]
    assert run(checker, problem, right) == Judgement("accept")
    rejected = run(checker, problem, wrong)
    assert rejected.verdict == "reject"
    assert rejected.why
    assert "\n" not in rejected.why


@pytest.mark.parametrize("name", NAMES)
def test_faults_that_a_gpu_reports_reject_and_faults_of_the_machine_do_not(name):
    checker = checkers()[name]
    for status in ("crash", "out_of_bounds", "timeout", "trap", "misaligned", "deadlock"):
        assert run(checker, SCALED, right, status=status).verdict == "reject"
    for status in ("infrastructure", "host_differs"):
        assert run(checker, SCALED, right, status=status).verdict == "undetermined"
    case = checker.suite(SCALED)[0]
    assert (
        checker.judge(case, [Execution(case.id, c, Outcome("ok")) for c in checker.configurations(case)]).verdict
        == "reject"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_execution_leaves_it_open(name):
    checker = checkers()[name]
    assert accepts(checker, checker.suite(SCALED), {}).verdict == "undetermined"
    assert accepts(checker, [], {}).verdict == "undetermined"


def test_zeros_pass_where_the_output_is_smaller_than_the_tolerance():
    """The known blind spot: softmax over a long axis (KernelBench issue 165)."""
    verdicts = {name: run(checkers()[name], SOFTMAX, zeros).verdict for name in NAMES}
    assert verdicts == {
        "kernelbench@1e-2": "accept",
        "kernelbench@1e-4": "accept",
        "kernelbench-verified": "accept",
        "exact-official": "reject",
        "truekernel": "reject",
    }


def test_the_identity_passes_for_relu_on_uniform_inputs_only():
    def identity(inputs, expected):
        return [inputs["x"]]

    verdicts = {name: run(checkers()[name], RELU, identity).verdict for name in NAMES}
    assert [verdicts[name] for name in NAMES] == ["accept", "accept", "reject", "accept", "reject"]


def test_a_dropped_parameter_is_seen_only_where_parameters_are_redrawn():
    def without_weight(inputs, expected):
        return [torch.relu(inputs["x"])]

    verdicts = [run(checkers()[name], RELU, without_weight).verdict for name in NAMES]
    assert verdicts == ["accept"] * 4 + ["reject"]


def test_the_next_lower_precision_passes_loose_tolerances_only():
    def rounded(inputs, expected):
        return [want.published.half().float() for want in expected]

    verdicts = {name: run(checkers()[name], RELU, rounded).verdict for name in NAMES}
    assert verdicts["kernelbench@1e-2"] == verdicts["kernelbench-verified"] == "accept"
    assert verdicts["exact-official"] == verdicts["truekernel"] == "reject"


def test_half_precision_runs_get_the_half_tolerance():
    def off_by_half_a_percent(inputs, expected):
        return [(want.published.float() * 1.005).half() for want in expected]

    assert run(checkers()["kernelbench@1e-4"], HALF, off_by_half_a_percent).verdict == "accept"
    single = run(checkers()["kernelbench@1e-4"], SCALED, lambda i, e: [w.published * 1.005 for w in e])
    assert single.verdict == "reject"
    assert run(checkers()["truekernel"], HALF, off_by_half_a_percent).verdict == "reject"


def test_unwritten_elements_are_seen_by_ours_alone():
    def last_row_left(inputs, expected):
        outputs = [want.published.clone() for want in expected]
        outputs[0].view(torch.int32)[-1:] = -1
        return outputs

    case = checkers()["truekernel"].suite(SCALED)[0]
    prepared = prepare(SCALED, case)
    found = statistics(last_row_left({}, prepared.expected), prepared.expected, "poison")
    assert found["unwritten"] == SCALED.axes["N"].audit
    only_that = {**found, "nonfinite": 0.0}
    execution = Execution(case.id, Configuration(), Outcome("ok"), only_that)
    assert "never written" in checkers()["truekernel"].judge(case, [execution]).why


def test_whole_numbers_must_be_exact_on_linear_problems():
    assert any(case.recipe == "integers" for case in checkers()["truekernel"].suite(SCALED))
    assert not any(case.recipe == "integers" for case in checkers()["truekernel"].suite(RELU))
    checker = checkers()["truekernel"]
    case = next(case for case in checker.suite(SCALED) if case.recipe == "integers")
    inputs = make_inputs(SCALED, case)
    expected = expect(SCALED, inputs, case.lengths)
    output = expected[0].published * (1 + 2.0**-23)
    found = statistics([output], expected, "poison")
    judged = checker.judge(case, [Execution(case.id, Configuration(), Outcome("ok"), found)])
    assert "not exact" in judged.why


def test_the_spread_of_honest_programs_widens_all_bounds():
    case = checkers()["truekernel"].suite(SCALED)[0]
    (want,) = prepare(SCALED, case).expected
    off = want.truth + 3 * want.scale * torch.where(want.truth < 0, -1.0, 1.0)
    output = torch.where(want.scale > 0, off, want.truth).float()
    for spread, verdict in ((None, "reject"), ((output.double() - want.truth).abs(), "accept")):
        found = statistics([output], [dataclasses.replace(want, spread=spread)], "poison")
        execution = Execution(case.id, Configuration(), Outcome("ok"), found)
        assert checkers()["truekernel"].judge(case, [execution]).verdict == verdict


def test_suites_share_official_cases_and_no_case_with_witnesses():
    official = [case.id for case in checkers()["kernelbench@1e-2"].suite(SCALED)]
    assert len(set(official)) == 5
    for name in ("kernelbench@1e-4", "exact-official"):
        assert [case.id for case in checkers()[name].suite(SCALED)] == official
    verified = checkers()["kernelbench-verified"].suite(SCALED)
    assert verified[0].id == official[0]
    assert [case.recipe for case in verified] == ["official", "official*3", "official*0.01", "official*-1"]
    used = {(name, length) for n in NAMES for case in checkers()[n].suite(SCALED) for name, length in case.axes}
    for case in witness_cases(SCALED):
        assert not used & {(name, length) for name, length in case.axes if length != 1}
        assert not [c for n in NAMES for c in checkers()[n].suite(SCALED) if c.axes == case.axes]
    assert not any(is_witness_seed(case.seed) for n in NAMES for case in checkers()[n].suite(SCALED))


def test_our_suite_varies_shapes_and_recipes():
    suite = checkers()["truekernel"].suite(SCALED)
    assert 8 <= len(suite) <= 23
    assert len({case.axes for case in suite}) >= 4
    assert {case.id for case in suite} == {case.id for case in checkers()["truekernel"].suite(SCALED)}


def test_published_checkers_run_as_a_gpu_does():
    for name in NAMES[:4]:
        for case in checkers()[name].suite(SCALED):
            assert checkers()[name].configurations(case) == (Configuration("gpu", fill="stale"),)


def test_ours_poisons_outputs_and_tries_other_orders_of_threads_on_some_cases():
    ours = checkers()["truekernel"]
    tried = [ours.configurations(case) for case in ours.suite(SCALED)]
    assert all(configurations[0] == Configuration("gpu", fill="poison") for configurations in tried)
    assert {len(configurations) for configurations in tried} == {1, 3, 4}
    assert {c.schedule for configurations in tried for c in configurations if c.fill == "stale"} == {"gpu"}


def test_our_suite_has_a_long_row_and_a_tail_where_an_axis_may_vary():
    axes = {"B": AxisSpec(64, 2, "batch", (1, 3)), "N": AxisSpec(4096, 256, "reduction", (1, 33))}
    problem = dataclasses.replace(
        SCALED,
        axes=axes,
        inputs=(TensorSpec("x", ("B", "N")),),
        parameters=(),
        outputs=(OutputSpec("y", ("B", "N")),),
        family="reduction",
        reference=lambda inputs, _: (inputs["x"] * 2,),
    )
    lengths = {case.lengths["N"] for case in checkers()["truekernel"].suite(problem)}
    assert max(lengths) > 10_000 and {129, 10, 1} <= lengths
    fixed = dataclasses.replace(problem, axes={name: dataclasses.replace(axis, odd=()) for name, axis in axes.items()})
    assert max(case.lengths["N"] for case in checkers()["truekernel"].suite(fixed)) == 256


def test_names_are_resolved():
    assert list(resolve(["kernelbench", "truekernel", "kernelbench@1e-4"])) == [*NAMES[:2], "truekernel"]
    assert list(checkers()) == NAMES
    with pytest.raises(UnknownNameError, match="kernelbench"):
        resolve(["kernelbnch"])
    with pytest.raises(BadInputError, match="no checker"):
        resolve([])


@pytest.mark.parametrize("name", ["nowhere.at_all:f", "math:nothing", "math:pi", "math:", ":sqrt"])
def test_callables_that_can_not_be_used_are_refused(name):
    with pytest.raises(BadInputError, match="checker"):
        resolve([name])


def test_a_callable_is_a_checker():
    checker = resolve(["torch:allclose"])["torch:allclose"]
    assert checker.needs_outputs
    assert checker.opinion([torch.ones(3)], [torch.ones(3)], None).verdict == "accept"
    assert checker.opinion([torch.ones(3)], [torch.zeros(3)], None).verdict == "reject"
    crashed = Execution("c", Configuration(), Outcome("crash"))
    assert checker.opinion([torch.ones(3)], [torch.zeros(3)], crashed).verdict == "reject"
    assert len(checker.suite(SCALED)) == 5


@pytest.mark.parametrize(
    ("function", "verdict"),
    [
        (lambda r, c: True, "accept"),
        (lambda r, c: Judgement("reject", "no"), "reject"),
        (lambda r, c: isinstance(r, tuple) and len(c) == 2, "accept"),
        (lambda r, c: torch.equal(r[0], c[0]), "reject"),
        (lambda r, c: None, "undetermined"),
        (lambda r, c: 1.0, "undetermined"),
        (lambda r, c: 1 / 0, "undetermined"),
    ],
)
def test_what_a_callable_may_answer(function, verdict):
    checker = ExternalChecker("mine", function)
    judged = checker.opinion([torch.ones(2), torch.ones(1)], [torch.zeros(2), torch.ones(1)], None)
    assert judged.verdict == verdict
    if verdict == "undetermined":
        assert "mine" in judged.why


def test_a_callable_that_writes_its_arguments_changes_nothing():
    def vandal(reference, candidate):
        reference.zero_()
        candidate.zero_()
        return True

    reference = torch.ones(3)
    ExternalChecker("vandal", vandal).opinion([reference], [reference], None)
    assert reference.sum() == 3


def test_vacuous_pairs_are_found():
    for name, passing in (("kernelbench@1e-2", {"zeros", "mean", "first row", "other case"}), ("truekernel", set())):
        checker = checkers()[name]
        found = passing_trivials(checker, [prepare(SOFTMAX, case) for case in checker.suite(SOFTMAX)])
        assert {trivial.trivial for trivial in found} == passing
        assert all(0 <= trivial.margin < 1 for trivial in found)
    checker = checkers()["kernelbench@1e-4"]
    assert [t.trivial for t in passing_trivials(checker, [prepare(RELU, c) for c in checker.suite(RELU)])] == [
        "input copy"
    ]


def test_vacuity_at_official_sizes_uses_a_slice_of_independent_axes():
    large = problem_of("large", lambda x, w: torch.softmax(x, 1), n=16384, m=2, official=1 << 20)
    checker = checkers()["kernelbench@1e-2"]
    cases, note = official_cases(large, checker.suite(large))
    assert len(cases) == 2
    assert cases[0].case.lengths["N"] == 16384
    assert cases[0].case.lengths["M"] < 64
    assert "slice: M" in note
    assert {trivial.trivial for trivial in passing_trivials(checker, cases)} >= {"zeros"}
    dependent = problem_of("dependent", lambda x, w: x / x.norm(), official=1 << 24)
    cases, note = official_cases(dependent, checker.suite(dependent))
    assert cases == []
    assert "too large" in note


def test_margins_agree_with_verdicts():
    for name in NAMES:
        checker = checkers()[name]
        for case in checker.suite(SCALED):
            prepared = prepare(SCALED, case)
            for outputs in (right({}, prepared.expected), wrong({}, prepared.expected)):
                found = statistics(outputs, prepared.expected, "stale", checker.tolerances)
                execution = Execution(case.id, Configuration(), Outcome("ok"), found)
                accepted = checker.judge(case, [execution]).verdict == "accept"
                assert accepted == (checker.margin(case, found) <= 1)


def test_discrimination_of_our_suite():
    """The computation in the next lower precision fails on at least one case of our suite, and on the official inputs under our tolerance."""
    for name in ("truekernel", "exact-official"):
        checker = checkers()[name]
        refused = 0
        for case in checker.suite(SCALED):
            prepared = prepare(SCALED, case)
            outputs = lower_precision(SCALED, prepared.inputs, case.lengths)
            found = statistics(outputs, prepared.expected, "stale")
            refused += checker.margin(case, found) > 1
        assert refused >= 3


def test_cases_are_refused_for_other_problems():
    with pytest.raises(BadInputError, match="can't be used"):
        make_inputs(RELU, Case.of("scaled", SCALED.audit_axes(), "official", 1))
