"""The engine: exact spans, merging, order, ids, and what it leaves alone."""

from __future__ import annotations

from dataclasses import replace as changed
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truekernel.errors import BadInputError, SourceError, UnknownNameError
from truekernel.model import RULE_CLASSES, Edit, Program
from truekernel.mutation import Rule, benign_rules, describe, mutants, mutants_of_file, rule, rules, select
from truekernel.source import apply_edits, parse_cuda
from truekernel.source.tree import has_errors

SOURCE = """// softmax of a row: a + b
#include <math.h>
#define SUM(a, b) ((a) + (b))
constexpr float EPS = 1e-5f;
__global__ void __launch_bounds__(32 + 32) row(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float s[32 + 1];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float best = -INFINITY;
    /* a - b */
    for (int k = threadIdx.x; k < n; k += blockDim.x) best = fmaxf(best, x[k]);
    s[threadIdx.x] = best;
    __syncthreads();
    for (int o = blockDim.x / 2; o > 0; o >>= 1) {
        if (threadIdx.x < o) s[threadIdx.x] = fmaxf(s[threadIdx.x], s[threadIdx.x + o]);
        __syncthreads();
    }
    asm volatile("// x + y");
    if (i < n) y[i] = expf(x[i] - s[0]) / (SUM(1.0f, EPS) + sqrtf(x[i] * x[i] + EPS));
}
int main() { return 1 + 2; }
"""
PLAN = '''"""Plan."""

PROBLEM = "p"


def launch(run, inputs, axes):
    y = run.empty((axes["n"],), "float32")
    run.launch("row", (axes["n"] + 255) // 256, 256, (inputs["x"], y, axes["n"]))
    return y
'''
PROGRAM = Program("row", "p", SOURCE, PLAN)
MADE = mutants(PROGRAM, rules())


def test_mutants_are_many_and_unique() -> None:
    assert len(MADE) > 100
    assert len({m.id for m in MADE}) == len({(m.source, m.plan_source) for m in MADE}) == len(MADE)
    assert all((m.source, m.plan_source) != (SOURCE, PLAN) for m in MADE)
    assert {m.file for m in MADE} == {"cu", "py"}


def test_edits_make_the_stated_text() -> None:
    for mutant in MADE:
        old, new = (SOURCE, mutant.source) if mutant.file == "cu" else (PLAN, mutant.plan_source)
        assert apply_edits(old, mutant.edits) == new
        assert mutant.diff.startswith(f"--- a/row.{mutant.file}\n+++ b/row.{mutant.file}\n@@ ")
        for made_by in mutant.made_by:
            site = made_by.site
            before = old.encode()
            whole = before[: site.start] + made_by.replacement.encode() + before[site.end :]
            assert whole.decode() == new
            assert site.line == before[: site.start].count(b"\n") + 1


def test_order_and_ids_depend_on_content_alone() -> None:
    again = mutants(PROGRAM, list(reversed(list(rules().values()))))
    assert [(m.id, m.edits, m.made_by) for m in again] == [(m.id, m.edits, m.made_by) for m in MADE]
    cu = [m.edits for m in MADE if m.file == "cu"]
    assert cu == sorted(cu)
    one = mutants(PROGRAM, select(["swap-add-sub"]))
    assert {m.id for m in one} <= {m.id for m in MADE}
    other = mutants(changed(PROGRAM, source=SOURCE.replace("softmax", "Softmax")), select(["swap-add-sub"]))
    assert not {m.id for m in one} & {m.id for m in other}


def test_nothing_outside_device_code_is_touched() -> None:
    for mutant in MADE:
        if mutant.file == "cu":
            for kept in ("// softmax of a row: a + b", "#define SUM(a, b) ((a) + (b))", "/* a - b */", '"// x + y"'):
                assert kept in mutant.source, mutant.diff
            assert "int main() { return 1 + 2; }" in mutant.source
            assert not has_errors(mutant.source), mutant.diff


def _named(name: str, *edits: tuple[Edit, ...]) -> Rule:
    return rule(name, "semantic", "For this test.", source="this test", examples=())(lambda _: iter(edits))  # type: ignore[arg-type]


def test_equal_results_are_one_mutant() -> None:
    at = SOURCE.index("-INFINITY")
    short, long = Edit(at, at + 1, "+"), Edit(at, at + len("-INFINITY"), "+INFINITY")
    (mutant,) = mutants(
        PROGRAM, [_named("long", (long,)), _named("short", (short,)), _named("same", (Edit(at, at + 1, "-"),))]
    )
    assert [made.rule for made in mutant.made_by] == ["long", "short"]
    assert mutant.edits == (short,)
    assert mutants(PROGRAM, [_named("long", (long,))])[0].id == mutant.id


def test_what_breaks_the_syntax_or_touches_comments_is_dropped() -> None:
    brace, comment = SOURCE.index("{"), SOURCE.index("a + b")
    directive = SOURCE.index("#define")
    bad = [(Edit(brace, brace + 1, ""),), (Edit(comment, comment + 1, "c"),), (Edit(directive, directive, "x "),)]
    assert mutants(PROGRAM, [_named("bad", *bad)]) == []


def test_a_rule_may_set_flags_instead() -> None:
    made = rule("off", "benign", "d.", source="s", examples=(), flags=("fma=off",))(lambda _: iter([()]))
    (mutant,) = mutants(PROGRAM, [made])
    assert (mutant.flags, mutant.source, mutant.edits) == (("fma=off",), SOURCE, ())


def test_selection() -> None:
    assert set(select(["warp"])) == {n for n, r in rules().items() if r.rule_class == "warp"}
    assert set(select(["swap-*", "benign"])) >= {"swap-add-sub", *benign_rules()}
    assert select([]) == rules()
    assert all(r.rule_class != "benign" for r in select(["*"]).values())
    with pytest.raises(UnknownNameError, match="swap-add-sub"):
        select(["swap-ad-sub"])


def test_every_class_has_rules() -> None:
    found = {r.rule_class for r in rules().values()}
    assert found == set(RULE_CLASSES)
    for wanted, least in (("arithmetic", 14), ("index", 14), ("boundary", 14), ("semantic", 13)):
        assert sum(r.rule_class == wanted for r in rules().values()) >= least


def test_descriptions_show_examples() -> None:
    text = describe(rules()["swap-add-sub"])
    assert "swap-add-sub (arithmetic)" in text and "->" in text and "not:" in text


def test_any_cuda_file_works(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(SOURCE)
    found = mutants_of_file(path, ["swap-add-sub"])
    assert found and all(m.program == "mine" for m in found)
    path.write_text("int main() { return 0; }")
    with pytest.raises(BadInputError, match="nothing to mutate"):
        mutants_of_file(path)
    path.write_text("Dear reader,\nthis is a letter.\n")
    with pytest.raises(SourceError, match=r"mine\.cu:1:1: "):
        mutants_of_file(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadInputError, match="UTF-8"):
        mutants_of_file(path)
    with pytest.raises(BadInputError, match="can't read"):
        mutants_of_file(tmp_path / "missing.cu")


def test_places_that_did_not_parse_are_left_alone() -> None:
    broken = SOURCE.replace("best = -INFINITY;", "best = -INFINITY; @@ 1.0f + 2.0f;")
    tree = parse_cuda(broken)
    assert tree.errors
    made = mutants(changed(PROGRAM, source=broken), select(["arithmetic", "boundary"]))
    assert made and all("@@" in m.source for m in made)


_TERMS = [
    "a",
    "b[i]",
    "1.5f",
    "(a - 2.0f)",
    "expf(-a)",
    "/* a + b */ a",
    "fmaxf(a, 0.0f)",
    "b[i * n + 1]",
    "(i < n ? b[i] : 0.0f)",
]
_SIGNS = [" + ", " - ", " * ", " / "]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(_TERMS), st.sampled_from(_SIGNS)), min_size=1, max_size=4), st.booleans())
def test_generated_kernels(terms: list[tuple[str, str]], commented: bool) -> None:
    expression = "".join(term + sign for term, sign in terms) + "a"
    note = "// a + b * c < d" if commented else ""
    source = f"__global__ void k(const float* b, float* y, int n) {{ {note}\n int i = threadIdx.x; float a = b[i];\n if (i < n) y[i] = {expression}; }}"
    program = Program("k", "", source, "")
    made = mutants(program, rules())
    assert made == mutants(program, rules())
    for mutant in made:
        assert not has_errors(mutant.source)
        assert mutant.source.count("/* a + b */") >= source.count("/* a + b */")
        assert note in mutant.source
        assert apply_edits(source, mutant.edits) == mutant.source


def test_diffs_apply() -> None:
    for mutant in MADE:
        old, new = (SOURCE, mutant.source) if mutant.file == "cu" else (PLAN, mutant.plan_source)
        lines = old.split("\n")
        rebuilt, position, left = [], 0, 0
        for line in mutant.diff.split("\n")[2:]:
            if line.startswith("@@"):
                start = int(line.split()[1].split(",")[0].strip("-")) - 1
                rebuilt += lines[position:start]
                position = start
                left += 1
            elif line[0] == "+":
                rebuilt.append(line[1:])
            else:
                assert lines[position] == line[1:]
                position += 1
                if line[0] == " ":
                    rebuilt.append(line[1:])
        assert left >= 1
        assert rebuilt + lines[position:] == new.split("\n")
