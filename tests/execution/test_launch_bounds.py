"""Launches of more threads than a kernel is bounded to are refused, as a GPU refuses them; all others run."""

import pytest
from simt_cases import compiled, once, plan_of, tensors

from truekernel.execution import simt
from truekernel.execution.simt.launch_bounds import launch_bounds

BOUNDED = """{head}
__global__ void {bounds} vadd(const float* a, const float* b, float* c, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}}
"""


@pytest.mark.parametrize(
    ("head", "bounds", "most"),
    [
        ("", "__launch_bounds__(128)", 128),
        ("", "__launch_bounds__ ( 32 * 4 , 2 )", 128),
        ("#define BLOCK 64  // threads", "__launch_bounds__(BLOCK * 2)", 128),
        ("constexpr int A = 8, B = A << 1;", "__launch_bounds__((A / 2) * A, 1)", 32),
        ("static const unsigned ROWS = 4;\nconstexpr int T = 32 * ROWS;", "__launch_bounds__(T)", 128),
        ("", "", None),
        ("// __launch_bounds__(32)", "", None),
        ("template <int T>", "__launch_bounds__(T)", None),
        ("", "__launch_bounds__(UNKNOWN)", None),
        ("#define LOOP LOOP", "__launch_bounds__(LOOP)", None),
        ("", "__launch_bounds__(8 / 0)", None),
        ("", "__launch_bounds__(128", None),
    ],
)
def test_bounds_are_read_where_numbers_tell_them(head, bounds, most):
    assert launch_bounds(BOUNDED.format(head=head, bounds=bounds), ["vadd"]) == [most or 0]


@pytest.mark.parametrize(
    ("template", "bounds", "kernel", "most"),
    [
        ("template <int T>", "__launch_bounds__(T)", "vadd<128>", 128),
        ("template <int T>", "__launch_bounds__((T) / 2)", "vadd< 64 * 2 >", 64),
        ("template <typename V, int T, int N = 4>", "__launch_bounds__(T * N)", "ns::vadd<float2, WIDE>", 256),
        ("template <typename V, int T, int N = 4>", "__launch_bounds__(T * N)", "vadd<pair<int, int>, 8, 2>", 16),
        ("template <typename V>", "__launch_bounds__(64)", "vadd<float>", 64),
        ("template <int T>", "__launch_bounds__(T)", "vadd", 0),
        ("template <int T> struct A {};", "__launch_bounds__(T)", "vadd<128>", 0),
    ],
)
def test_template_arguments_tell_them_too(template, bounds, kernel, most):
    source = BOUNDED.format(head=f"constexpr int WIDE = 64;\n{template}", bounds=bounds)
    assert launch_bounds(source, [kernel, "other<1>"]) == [most, 0]


def test_each_kernel_has_its_own():
    source = "\n".join(
        f"__global__ void {b} k{n}(int* x) {{}}"
        for n, b in enumerate(["__launch_bounds__(32)", "", "__launch_bounds__(64)"])
    )
    assert launch_bounds(source, ["k2", "k1", "k0"]) == [64, 0, 32]


def ends(source, **plan):
    with simt.Server() as server:
        server.define("case", plan_of(source, **plan), tensors())
        return once(server, compiled(source), "case")[0].outcome


@pytest.mark.parametrize(("bound", "status"), [(32, "trap"), (255, "trap"), (256, "ok"), (1024, "ok")])
def test_more_threads_than_that_are_refused(bound, status):
    outcome = ends(BOUNDED.format(head=f"constexpr int MOST = {bound};", bounds="__launch_bounds__(MOST)"), block=256)
    assert outcome.status == status
    assert status == "ok" or f"__launch_bounds__ allows {bound}" in outcome.message


@pytest.mark.parametrize(
    ("shared", "byte", "status"),
    [(100, 127, "ok"), (100, 128, "out_of_bounds"), (1024, 1024, "out_of_bounds"), (900, 1023, "ok")],
)
def test_shared_memory_ends_at_the_next_multiple_of_128_bytes_as_on_an_h200(shared, byte, status):
    source = f"""
__global__ void vadd(const float* a, const float* b, float* c, int n) {{
  extern __shared__ volatile char bytes[];
  c[threadIdx.x] = bytes[{byte}];
}}
"""
    outcome = ends(source, shared=shared)
    assert outcome.status == status, outcome.message
