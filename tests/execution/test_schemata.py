"""Variants switched at run time give the same answers as variants compiled alone; what must not be switched is left over."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simt_cases import BLOCK_SUM, answers, compiled, plan_of, tensors

from truekernel.errors import BadInputError
from truekernel.execution import simt
from truekernel.execution.simt.hosts import Hosts
from truekernel.model import SCHEDULES, Configuration, Edit
from truekernel.source import apply_edits

KERNEL = "vadd<3>"
# (text that occurs once, what becomes of it, what is switched: None = left over)
CHANGES: list[tuple[str, str, str | None]] = [
    ("2.0f * x", "2.0f + x", "2.0f * x"),
    ("2.0f * x", "2.5f * x", "2.0f"),
    ("float sum = 0.0f", "float sum = 1.0f", "0.0f"),
    ("k < UNROLL", "k <= UNROLL", "k < UNROLL"),
    ("k < UNROLL", "k < 1", "UNROLL"),
    ("t + k * THREADS", "t * k + THREADS", "t + k * THREADS"),
    ("i < n", "i <= n", "i < n"),
    ("if (i < n) sum += a[i] * b[i] + twice(b[i]);", "sum += a[0];", "if (i < n) sum += a[i] * b[i] + twice(b[i]);"),
    ("sum += a[i] * b[i] + twice(b[i])", "sum -= a[i] * b[i] + twice(b[i])", "sum += a[i] * b[i] + twice(b[i])"),
    ("a[i] * b[i]", "a[i] / b[i]", "a[i] * b[i] + twice(b[i])"),
    ("a[i] * b[i]", "a[i + 1] * b[i]", "i"),
    ("parts[t] = sum;\n  __syncthreads();", "parts[t] = sum;\n  ;", "__syncthreads();"),
    ("step >>= 1", "step >>= 2", "1"),
    ("t < step", "t <= step", "t < step"),
    ("parts[t] += parts[t + step];\n    __syncthreads();", "parts[t] += parts[t + step];\n    ;", "__syncthreads();"),
    ("parts[t] += parts[t + step]", "parts[t] += parts[t - step]", "t + step"),
    ("last[t] = parts[0];", "last[t] = parts[0]; __syncthreads();", "last[t] = parts[0];"),
    ("c[t] = last[t] - t", "c[t] = last[t] + t", "last[t] - t"),
    ("if (t < n) c[t]", "if (t < n && t != 7) c[t]", "t < n"),
    ("last[THREADS]", "last[2 * THREADS]", None),
    ("float sum", "double sum", None),
    ("#define THREADS 128", "#define THREADS 64", None),
    ("const float* __restrict__ a", "const float* a", None),
]


def edit(old: str, new: str, source: str = BLOCK_SUM) -> Edit:
    assert source.count(old) == 1, old
    data, at = source.encode(), source.encode().index(old.encode())
    before, after = old.encode(), new.encode()
    left = next((k for k in range(min(len(before), len(after))) if before[k] != after[k]), min(len(before), len(after)))
    before, after = before[left:], after[left:]
    right = next(
        (k for k in range(min(len(before), len(after))) if before[-1 - k] != after[-1 - k]),
        min(len(before), len(after)),
    )
    assert data[at + left : at + left + len(before)] == before
    return Edit(at + left, at + left + len(before) - right, after[: len(after) - right].decode())


VARIANTS = {number: (edit(old, new),) for number, (old, new, _) in enumerate(CHANGES, start=1)}
SWITCHED = {number for number, (_, _, host) in enumerate(CHANGES, start=1) if host is not None}


@pytest.fixture(scope="module")
def server():
    with simt.Server() as running:
        running.define("case", plan_of(BLOCK_SUM, KERNEL, shared=512, grid=1), tensors())
        yield running


@pytest.mark.parametrize(("old", "new", "host"), CHANGES)
def test_smallest_host(old, new, host):
    arms = Hosts(BLOCK_SUM).arms((edit(old, new),))
    if host is None:
        assert arms is None
        return
    assert arms is not None and len(arms) == 1
    place = arms[0].host
    assert BLOCK_SUM.encode()[place.start : place.end].decode() == host
    assert place.line == BLOCK_SUM.encode()[: place.start].count(b"\n") + 1


@pytest.mark.parametrize("fma", [True, False])
def test_same_answers_as_alone_and_the_original_is_unchanged(server, fma):
    requests = [("case", Configuration(schedule=schedule)) for schedule in SCHEDULES]
    result = simt.compile_schema(BLOCK_SUM, (KERNEL,), VARIANTS, simt.Options(fma=fma))
    assert (
        set(result.members) == SWITCHED and set(result.leftovers) == VARIANTS.keys() - SWITCHED and not result.failures
    )
    assert result.library is not None
    original = answers(server.run(compiled(BLOCK_SUM, KERNEL, fma=fma), 0, requests).executions)
    assert answers(server.run(result.library, 0, requests).executions) == original
    differing = 0
    for number in result.members:
        alone = compiled(apply_edits(BLOCK_SUM, VARIANTS[number]), KERNEL, fma=fma)
        wanted = answers(server.run(alone, 0, requests, cpu_seconds=1).executions)
        assert answers(server.run(result.library, number, requests, cpu_seconds=1).executions) == wanted, CHANGES[
            number - 1
        ]
        differing += wanted != original
        server.release(alone)
        alone.close()
    assert differing >= 12


def test_checked_schema_finds_the_faults_of_its_variants(server):
    checked = [("case", Configuration(checked=True))]
    result = simt.compile_schema(BLOCK_SUM, (KERNEL,), VARIANTS, simt.Options(checked=True))
    assert result.library is not None
    assert server.run(result.library, 0, checked).executions[0].outcome.status == "ok"
    for old, new, status, line in (
        ("parts[t] = sum;\n  __syncthreads();", "parts[t] = sum;\n  ;", {"race", "uninitialised_read"}, 17),
        ("i < n", "i <= n", {"out_of_bounds"}, 12),
    ):
        number = next(k for k, change in enumerate(CHANGES, start=1) if change[:2] == (old, new))
        outcome = server.run(result.library, number, checked).executions[0].outcome
        assert outcome.status in status and outcome.where.line == line, outcome


def test_leftovers_and_members_agree_with_a_batch(server):
    result = simt.compile_schema(BLOCK_SUM, (KERNEL,), VARIANTS)
    rest = simt.compile_batch({n: apply_edits(BLOCK_SUM, VARIANTS[n]) for n in result.leftovers}, (KERNEL,))
    assert set(rest.members) == set(result.leftovers)
    for number, library in rest.members.items():
        alone = compiled(apply_edits(BLOCK_SUM, VARIANTS[number]), KERNEL)
        case = [("case", Configuration())]
        assert answers(server.run(library, number, case).executions) == answers(server.run(alone, 0, case).executions)


def test_arms_of_another_type_are_left_over_and_named_by_the_check():
    variants = {
        1: (edit("float sum = 0.0f", "float sum = 0.0"),),
        2: (edit("i < n", "i | n"),),
        3: (edit("t < step", "t <= step"),),
        4: (edit("2.0f * x", "2 * x"),),
    }
    result = simt.compile_schema(BLOCK_SUM, (KERNEL,), variants)
    assert set(result.members) == {3} and set(result.leftovers) == {1, 2, 4}


def test_variants_that_do_not_compile_are_dropped_and_the_rest_is_kept():
    variants = {
        1: (edit("i < n", "i < nowhere"),),
        2: (edit("t < step", "t <= step"),),
        3: (edit("parts[t] = sum;", "parts[t] = sum.x;"),),
        4: (edit("step >>= 1", "step >>>= 1"),),
    }
    result = simt.compile_schema(BLOCK_SUM, (KERNEL,), variants)
    assert set(result.members) == {2} and set(result.leftovers) == {1, 3, 4} and not result.failures


def test_an_original_that_does_not_compile_is_a_failure_of_its_own():
    broken = BLOCK_SUM.replace("float sum = 0.0f", "float sum = nothing")
    result = simt.compile_schema(broken, (KERNEL,), {1: (edit("t < step", "t <= step", broken),)})
    assert not result.members and result.leftovers == (1,)
    assert result.failures[0].line == 8 and "nothing" in result.failures[0].message


def test_nested_and_joint_edits(server):
    inner, outer = edit("t + k * THREADS", "t - k * THREADS"), edit("k < UNROLL", "k < 2")
    both = (edit("step >>= 1", "step >>= 2"), edit("t < step", "t < 2 * step"))
    variants = {1: (inner,), 2: (outer,), 3: both, 4: (inner, outer)}
    result = simt.compile_schema(BLOCK_SUM, (KERNEL,), variants)
    assert set(result.members) == set(variants)
    case = [("case", Configuration())]
    for number, edits in variants.items():
        wanted = answers(server.run(compiled(apply_edits(BLOCK_SUM, edits), KERNEL), 0, case).executions)
        assert answers(server.run(result.members[number], number, case).executions) == wanted


@pytest.mark.parametrize(
    "statement",
    [
        "template_use<4>(x);",
        "if constexpr (4 > 3) x = 1;",
        "constexpr int size = 4;",
        "static const int size = 4;",
        "int table[4];",
        "switch (x) { case 4: x = 2; }",
        "static_assert(4 == sizeof(float));",
        "const int size = 4; int table[size];",
        "const int size = 4;\n#pragma unroll size\nfor (;;) {}",
        'asm volatile("4");',
        "WHOLE(4);",
    ],
)
def test_constants_and_macro_arguments_are_never_switched(statement):
    source = f"#define WHOLE(x) #x\n__global__ void k(int x) {{ {statement} }}\n"
    at = source.index("4", source.index("{"))
    arms = Hosts(source).arms((Edit(at, at + 1, "5"),))
    if arms is not None:
        switched = source[arms[0].host.start : arms[0].host.end]
        assert arms[0].host.category == "statement" or switched in ("template_use<4>(x)", "WHOLE(4)")


def test_an_edit_outside_of_functions_is_left_over():
    source = "__constant__ float scale = 2.0f;\n__global__ void k(float* x, int n = 3) { x[0] = scale; }\n"
    for old in ("2.0f", "3"):
        at = source.index(old)
        assert Hosts(source).arms((Edit(at, at + len(old), "5"),)) is None


def test_else_stays_with_its_if():
    source = "__global__ void k(int* x) { if (x[0]) x[1] = 1; else x[2] = 2; }\n"
    at = source.index("x[1] = 1;")
    (arm,) = Hosts(source).arms((Edit(at, at + 9, "if (x[3]) x[1] = 1;"),)) or ()
    assert source[arm.host.start : arm.host.end].startswith("if (x[0])")


def test_numbers_start_at_one_and_unknown_variants_are_refused(server):
    with pytest.raises(BadInputError, match="from 1"):
        simt.compile_schema(BLOCK_SUM, (KERNEL,), {0: VARIANTS[1]})
    library = simt.compile_schema(BLOCK_SUM, (KERNEL,), {1: VARIANTS[1]}).members[1]
    with pytest.raises(BadInputError, match="no variant 9"):
        server.run(library, 9, [("case", Configuration())])


EXPRESSION = st.recursive(
    st.sampled_from(["p", "q", "x[0]", "2.0f", "3.0f"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"{t[0]} {t[1]} {t[2]}"),
        inner.map(lambda e: f"({e})"),
        inner.map(lambda e: f"-({e})"),
    ),
    max_leaves=6,
)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(EXPRESSION, st.integers(0, 30), st.sampled_from(["p", "q + p", "p * q", "-q", "p - q"])),
        min_size=4,
        max_size=8,
    )
)
def test_any_edit_of_an_expression_means_what_the_edited_text_means(rows):
    """Operators bind in the edited text as they bind in the arm, contraction included: results are equal bit for bit."""
    lines = [f"  out[{k}] = {expression};\n" for k, (expression, _, _) in enumerate(rows)]
    head = "__global__ void vadd(const float* x, const float* y, float* out, int n) {\n  float p = x[1], q = y[2];\n"
    source = head + "".join(lines) + "}\n"
    variants = {}
    at = len(head)
    for number, ((expression, where, new), line) in enumerate(zip(rows, lines, strict=True), start=1):
        names = [k for k, letter in enumerate(expression) if letter in "pq"]
        if names:
            place = at + line.index(" = ") + 3 + names[where % len(names)]
            variants[number] = (Edit(place, place + 1, new),)
        at += len(line)
    result = simt.compile_schema(source, ("vadd",), variants)
    assert set(result.members) == set(variants)
    with simt.Server() as server:
        server.define("case", plan_of(source, block=1, grid=1, n=8), tensors(8))
        case = [("case", Configuration())]
        for number, edits in variants.items():
            wanted = answers(server.run(compiled(apply_edits(source, edits)), 0, case).executions)
            assert answers(server.run(result.members[number], number, case).executions) == wanted
