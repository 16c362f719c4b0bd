"""Sources that are another kernel to another compiler."""

import pytest

from truekernel.judge.candidates import load_candidate
from truekernel.judge.check import check, prepare
from truekernel.judge.inside.readings import DEFINED, UNDEFINED, asked, defined, includes, joined, readings, telling
from truekernel.judge.posing import pose
from truekernel.judge.steps import new_secret
from truekernel.judge.verdict import NOT_COVERED_VERSIONS

PLAN = """PROBLEM = "elu"


def launch(run, inputs, axes):
    count = axes["B"] * axes["D"]
    y = run.empty((axes["B"], axes["D"]), "float32")
    run.launch("elu_rows", (count + 255) // 256, 256, (inputs["x"], y, count))
    return y
"""
KERNEL = """{head}
__global__ void elu_rows(const float* x, float* y, int count) {{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
{condition}
    y[i] = x[i] > 0.0f ? x[i] : expm1f(x[i]);
#else
    y[i] = {other};
#endif
}}
"""
RIGHT = "x[i] <= 0.0f ? expm1f(x[i]) : x[i]"


@pytest.fixture(scope="module")
def elu():
    posed = pose("elu")
    return posed, prepare(posed, new_secret())


@pytest.mark.parametrize(
    ("head", "condition", "named"),
    [
        ("", "#ifdef TK_HERE", "TK_HERE"),
        ("", "#if defined(printf)", "printf"),
        ("", "#ifdef asm", "asm"),
        ("#define HERE defined(__SSE2__)", "#if HERE", "__SSE2__"),
        ("", "#ifndef __CUDACC_RTC__", "__CUDACC_RTC__"),
        ("", "#if __has_include(<unistd.h>)", "__has_include"),
        ("", "# /* none */ ifdef \\\n __SSE2__", "__SSE2__"),
        ("", "#if defined(TK_HERE) != defined(__CUDACC_RTC__)", "TK_HERE"),
    ],
)
def test_a_source_that_tells_the_compiler_is_not_called_right(elu, tmp_path, head, condition, named):
    verdict = judged(elu, tmp_path, KERNEL.format(head=head, condition=condition, other="x[i]"))
    assert verdict.word == "undetermined", verdict.why
    assert named in verdict.why


@pytest.mark.parametrize(
    ("head", "condition"),
    [
        ("#ifndef BLOCK\n#define BLOCK 256\n#endif", "#if BLOCK > 32"),
        ("#ifdef __GNUC__\n#define INLINE inline\n#else\n#define INLINE\n#endif", "#if 1"),
        ("#ifndef __CUDACC_RTC__\n#include <cstdint>\n#endif", "#if 1"),
        ("#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif", "#if 1"),
        ("#pragma once", "#ifdef __CUDACC__"),
        ("", "#ifndef _MSC_VER"),
    ],
)
def test_conditions_that_change_nothing_are_right(elu, tmp_path, head, condition):
    verdict = judged(elu, tmp_path, KERNEL.format(head=head, condition=condition, other=RIGHT))
    assert verdict.word == "right", verdict.why
    assert NOT_COVERED_VERSIONS not in verdict.not_covered


def test_branches_for_other_gpus_are_said_to_be_open(elu, tmp_path):
    verdict = judged(elu, tmp_path, KERNEL.format(head="", condition="#if __CUDA_ARCH__ < 900", other=RIGHT))
    assert verdict.word == "right", verdict.why
    assert NOT_COVERED_VERSIONS in verdict.not_covered


def judged(elu, folder, text):
    posed, suite = elu
    (folder / "k.cu").write_text(text)
    (folder / "k.py").write_text(PLAN)
    return check(load_candidate(str(folder / "k.cu"), posed.problem), posed, suite=suite)


def test_names_that_decide_conditions():
    text = "#define A B\n#define B C + 1\n#define D E\n#if A /* x\n y */ && F \\\n && G\n#endif\n%: ifdef H\n#undef I\nif (J) K;\n"
    assert asked(text) >= {"A", "B", "C", "F", "G", "H"}
    assert not asked(text) & {"D", "E", "I", "J", "K", "defined"}
    assert defined(text) == {"A", "B", "D"}
    assert joined(text).count("\n") == text.count("\n")
    assert includes('#include <a>\n#if 1\n # include "b"\n') == '#include <a>\n # include "b"\n'


def test_names_that_tell():
    text = (
        "#if defined(X) && defined(Y) && __CUDA_ARCH__ > 700 && defined(__CUDABE__) && defined(Z)\n#define Z 1\n#endif"
    )
    assert telling(text, {"X", "__CUDA_ARCH__"}) == ["X", "__CUDABE__"]
    assert telling(text, {"Z"}) == ["Z", "__CUDABE__"]


def test_readings_are_all_choices():
    found = readings("#if defined(X) || defined(W)\nint X;\n#endif", ["X", "W"], {"X"})
    assert sorted(found) == sorted(
        f"#if defined({x}) || defined({w})\nint X;\n#endif"
        for x, w in (("X", DEFINED), (UNDEFINED, "W"), (UNDEFINED, DEFINED))
    )
    assert readings("#if __has_include(<a.h>)\n", ["__has_include"], set()) == ["#if 0\n"]
