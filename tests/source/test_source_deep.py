"""Sources that are nested deeper than Python's usual stack."""

import sys

import pytest

from truekernel.corpus import problems
from truekernel.errors import BadInputError
from truekernel.model import Program
from truekernel.mutation import mutants, select
from truekernel.source import translate_solve
from truekernel.source.deep import deep

SOLVE = "void solve(const float* x, float* y, float alpha, int M, int N) {{ int n = {sum}; {body} }}"


@pytest.mark.parametrize("terms", [1500, 3000])
def test_long_sums_are_followed(terms):
    total = "+".join(["x[0]"] * terms)
    source = f"__global__ void f(float* x) {{ x[0] = {total}; if (threadIdx.x) __syncthreads(); }}\n"
    assert mutants(Program("f", "", source, ""), select(["sync"]))


@pytest.mark.parametrize(("terms", "ifs"), [(3000, 0), (1, 300)])
def test_deep_host_functions_are_translated(terms, ifs):
    body = "if (M > 1) {" * ifs + "f<<<1, 1>>>(x, y, n);" + "}" * ifs
    source = "__global__ void f(const float* x, float* y, int n) {}\n" + SOLVE.format(
        sum="+".join(["M"] * terms), body=body
    )
    plan = translate_solve(source, problems()["elu"])
    assert plan.count("M + M") + 1 >= min(terms, 2) and plan.count("if ") == ifs


def test_limits_are_put_back_and_errors_pass():
    before = sys.getrecursionlimit()

    @deep
    def down(levels: int) -> int:
        return levels and 1 + down(levels - 1)

    assert down(20_000) == 20_000
    with pytest.raises(BadInputError, match="nested too deeply"):
        down(10_000_000)
    assert sys.getrecursionlimit() == before
