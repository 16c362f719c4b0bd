"""What CUDA C++ the shim serves, in plain and checked builds of both compilers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from simt_bench import SCHEDULES, CompileError, b, compile_kernels, run

SOURCE = Path(__file__).with_name("simt_features.cu").read_text()
NAMES = re.findall(r"__global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\(", SOURCE)
TEMPLATES = {
    "shared_in_template": ["shared_in_template<float, 64>", "shared_in_template<double, 64>"],
    "double_buffer": ["double_buffer<true>", "double_buffer<false>"],
    "matrix_multiply": ["matrix_multiply<__half>", "matrix_multiply<__nv_bfloat16>"],
}
KERNELS = tuple(expression for name in NAMES for expression in TEMPLATES.get(name, [name]))
BUILDS = [("clang", False), ("clang", True), ("gcc", False), ("gcc", True)]
t32, t64 = np.arange(32), np.arange(64)


@pytest.fixture(scope="module", params=BUILDS, ids=lambda p: f"{p[0]}-{'checked' if p[1] else 'plain'}")
def library(request):
    kind, checked = request.param
    return compile_kernels(SOURCE, KERNELS, kind, checked)


def launch(
    library, kernel, buffers, args, grid=(1,), block=(64,), shared=0, cooperative=False, schedules=("gpu", "random")
):
    """Runs under some schedules, wants the same bytes from all, returns the result."""
    results = [
        run(library, buffers, [(KERNELS.index(kernel), grid, block, args, shared, cooperative)], schedule)
        for schedule in schedules
    ]
    for result in results:
        assert result.status == "ok", (result.report["message"], result.line())
        assert result.report["hazards"] == []
        assert result.buffers == results[0].buffers
    return results[0]


def out(library, kernel, n, dtype, **options):
    """A kernel whose only argument is its output."""
    result = launch(library, kernel, [("scratch", n * np.dtype(dtype).itemsize)], [b(0)], **options)
    return result.array(0, dtype)


def test_shared_memory(library):
    assert (out(library, "shared_at_namespace_scope", 64, "i4", schedules=SCHEDULES) == 63 - t64).all()
    for kernel, dtype in (("shared_in_template<float, 64>", "f4"), ("shared_in_template<double, 64>", "f8")):
        x = np.random.default_rng(0).random(64).astype(dtype)
        r = launch(library, kernel, [x, ("scratch", x.nbytes)], [b(0), b(1)])
        assert (r.array(1, dtype) == x[63]).all()
    assert (out(library, "dynamic_at_namespace_scope", 64, "f4", shared=256) == (t64 + 1) % 64).all()
    assert (out(library, "dynamic_at_block_scope", 64, "i4", shared=1024) == (t64 + 1) % 64).all()
    assert (out(library, "shared_halves", 64, "f4") == 64 - t64).all()
    assert (out(library, "alignment_specifier", 4, "i4", block=(4,)) == 8).all()


def test_barrier_reductions(library):
    r = out(library, "barrier_reductions", 192, "i4", schedules=SCHEDULES).reshape(64, 3)
    assert (r == [22, 1, 1]).all()


def test_shuffles(library):
    r = out(library, "shuffles", 256, "i4", block=(32,), schedules=SCHEDULES).reshape(32, 8)
    t, group = t32, t32 & ~7
    assert (r[:, 0] == 5).all()
    assert (r[:, 1] == np.where(t >= 3, t - 3, t)).all()
    assert (r[:, 2] == np.where(t + 3 < 32, t + 3, t)).all()
    assert (r[:, 3] == (t ^ 9)).all()
    assert (r[:, 4] == group + 3).all()
    assert (r[:, 5] == np.where(t - 3 >= group, t - 3, t)).all()
    assert (r[:, 6] == np.where(t + 3 < group + 8, t + 3, t)).all()
    # Lane 9 ^ ... leaves the segment of eight upward: own value; downward it reaches the earlier segment (PTX ISA, shfl.bfly).
    assert (r[:, 7] == np.where((t ^ 9) > (t | 7), t, t ^ 9)).all()


def test_shuffle_types(library):
    t = t32
    other = t ^ 1
    expected = 3.25 + float(2 << 40) + 4.5 + other + 2 * other + np.where(t < 31, t + 1, t)
    assert (out(library, "shuffle_types", 32, "f8", block=(32,)) == expected).all()


def test_partial_masks(library):
    expected = np.where(t32 < 8, 70, np.where(t32 >= 16, t32 ^ 1, -1))
    assert (out(library, "partial_masks", 32, "i4", block=(32,), schedules=SCHEDULES) == expected).all()


def test_votes(library):
    r = out(library, "votes", 64 * 7, "u4", schedules=SCHEDULES).reshape(64, 7)
    assert (r[:, 0] == 0xAAAAAAAA).all()
    assert (r[:, 1] == (t64 >= 32)).all()
    assert (r[:, 2] == 1).all()
    for t in range(64):
        assert r[t, 3] == sum(1 << lane for lane in range(32) if (lane + t // 32 * 32) % 3 == t % 3)
    assert (r[:, 4] == 0xFFFFFFFF).all()
    assert (r[:, 5] == 1).all()
    assert (r[:, 6] == 0xFFFFFFFF).all()


def test_warp_reductions(library):
    r = out(library, "warp_reductions", 192, "i4", block=(32,)).reshape(32, 6)
    assert (r == [-16, -16, 15, 64, 31, -1]).all()


def test_active_mask_names_the_lanes_of_the_branch(library):
    r = out(library, "active_mask_in_branch", 64, "u4")
    assert (r == np.where(t64 % 4 == 0, 0x11111111, 0)).all()


def test_atomics(library):
    ints = np.zeros(8, "i4")
    unsigned = np.array([0, 5, 0xFFFFFFFF, 0, 0], "u4")
    buffers = [ints, unsigned, np.zeros(1, "u8"), np.zeros(1, "f4"), np.zeros(1, "f8"), np.zeros(2, "f2")]
    kernel = KERNELS.index("atomics")
    r = run(library, buffers, [(kernel, (1,), (32,), [b(i) for i in range(6)])])
    assert r.status == "ok", r.report
    i = r.array(0, "i4")
    assert list(i[:5]) == [64, -96, 31, -31, 9]
    assert i[5] == 1
    assert list(i[6:]) == [32, 32]
    u = r.array(1, "u4")
    value = 0
    for _ in range(32):
        value = 0 if value >= 10 else value + 1
    assert u[0] == value
    value = 5
    for _ in range(32):
        value = 10 if value == 0 or value > 10 else value - 1
    assert u[1] == value
    assert list(u[2:]) == [0, 0xFFFFFFFF, 0xFFFFFFFF]
    assert r.array(2, "u8")[0] == 32 << 32
    assert r.array(3, "f4")[0] == 16
    assert r.array(4, "f8")[0] == 8
    assert list(r.array(5, "f2")) == [32, 64]


def test_compare_and_swap_loop(library):
    x = np.random.default_rng(1).standard_normal(256).astype("f4")
    for schedule in SCHEDULES:
        buffers = [x, np.full(1, -9, "f4")]
        r = run(library, buffers, [(KERNELS.index("compare_and_swap_loop"), (4,), (64,), [b(0), b(1)])], schedule)
        assert r.status == "ok", (r.report, r.line())
        assert r.array(1, "f4")[0] == x.max()


def test_cooperative_groups(library):
    r = launch(library, "cooperative", [("scratch", 64 * 32)], [b(0), np.int32(21)], schedules=SCHEDULES)
    r = r.array(0, "i4").reshape(64, 8)
    first = t64 // 8 * 8
    assert (r[:, 0] == 8 * first + 28).all()
    assert (r[:, 1] == np.where(t64 + 2 < first + 8, t64 + 2, t64)).all()
    assert (r[:, 2] == t64 % 8 * 100 + t64 // 8).all()
    assert (r[:, 3] == 0xAA).all()
    assert (r[:, 4] == first + 7).all()
    assert (r[:, 5] == t64 % 8 + 1).all()
    assert (r[:, 6] == np.where(t64 < 21, 21, 0)).all()
    assert (r[:, 7] == np.where(t64 < 21, 1000 * t64, 0)).all()


def test_groups_within_groups(library):
    r = (
        launch(library, "nested_groups", [("scratch", 64 * 24)], [b(0)], schedules=SCHEDULES)
        .array(0, "i4")
        .reshape(64, 6)
    )
    assert (r[:, 0] == t64 // 32 * 100 + 2).all()
    assert (r[:, 1] == t64 % 32 // 8 * 100 + 4).all()
    assert (r[:, 2] == r[:, 1]).all()
    assert (r[:, 3] == t64 % 2 * 100 + 2).all()
    assert (r[:, 4] == 400 + t64 % 8 // 2).all()
    assert (r[:, 5] == t64 % 8).all()


def test_grid_barrier_in_cooperative_launches_only(library):
    buffers = [("scratch", 1024), ("scratch", 1024)]
    r = launch(library, "grid_barrier", buffers, [b(0), b(1)], (4,), cooperative=True, schedules=SCHEDULES)
    assert (r.array(1, "i4") == 255 - np.arange(256)).all()
    refused = run(library, buffers, [(KERNELS.index("grid_barrier"), (4,), (64,), [b(0), b(1)])])
    assert refused.status == "trap"
    assert "cooperative" in refused.report["message"]


@pytest.mark.parametrize("element", ["__half", "__nv_bfloat16"])
def test_matrix_multiply(library, element):
    dtype = torch.float16 if element == "__half" else torch.bfloat16
    a, c = torch.randn(16, 32).to(dtype), torch.randn(16, 32).to(dtype)
    raw = [x.view(torch.int16).numpy() for x in (a, c)]
    r = launch(library, f"matrix_multiply<{element}>", [*raw, ("scratch", 1024)], [b(0), b(1), b(2)], block=(32,))
    expected = 2 * (a.double() @ c.double().T).numpy()
    assert np.abs(r.array(2, "f4").reshape(16, 16) - expected).max() < 1e-4


def test_three_dimensions(library):
    r = out(library, "three_dimensions", 3 * 2 * 2 * 24, "i4", grid=(3, 2, 2), block=(4, 3, 2), schedules=SCHEDULES)
    r = r.reshape(2, 2, 3, 2, 3, 4)
    for bz, by, bx, tz, ty, tx in np.ndindex(r.shape):
        assert r[bz, by, bx, tz, ty, tx] == tx + 10 * ty + 100 * tz + 1000 * bx + 10000 * by + 100000 * bz


def test_device_variables_start_afresh_in_every_execution(library):
    kernel = KERNELS.index("device_variables")
    r = run(library, [("scratch", 256)], [(kernel, (1,), (64,), [b(0)])], repeat=3)
    assert sorted(r.array(0, "f4")) == [15 + i for i in range(64)]


def test_integer_intrinsics(library):
    x = np.array([0, 1, 0x80000000, 0xDEADBEEF, 0x3FC00000, 0xFFFFFFFF, 12345, 0x41200000] * 4, "u4")
    r = launch(library, "integer_intrinsics", [x, ("scratch", 32 * 48)], [b(0), b(1)], block=(32,))
    r = r.array(1, "u4").reshape(32, 12)
    for v, row in zip(map(int, x), r, strict=True):
        bits = f"{v:032b}"
        assert row[0] == bits.count("1")
        assert row[1] == (32 - v.bit_length())
        assert row[2] == (0 if v == 0 else (v & -v).bit_length())
        assert row[3] == int(bits[::-1], 2)
        assert row[4] == ((0x12345678 << 8 | v >> 24) & 0xFFFFFFFF)
        both = v.to_bytes(4, "little") + 0xAABBCCDD.to_bytes(4, "little")
        assert row[5] == int.from_bytes(bytes(both[i] for i in (1, 3, 5, 7)), "little")
        assert row[6] == v * 0x87654321 >> 32
        signed = np.frombuffer(v.to_bytes(4, "little"), "i1").astype(int)
        assert row[7] == (7 + signed @ [4, 3, 2, 1]) & 0xFFFFFFFF
        assert row[11] == 2 * row[0]
        f = np.uint32(v).view("f4")
        rounded = 0 if np.isnan(f) else int(np.clip(np.rint(np.float64(f)), -(2**31), 2**31 - 1))
        assert row[10] == (rounded - 2) & 0xFFFFFFFF


def test_float_intrinsics(library):
    x = np.concatenate([np.random.default_rng(2).standard_normal(2000), [1e-3, 10, -20, 0.5]]).astype("f4")
    n = len(x)
    r = launch(library, "float_intrinsics", [x, ("scratch", 64 * n)], [b(0), b(1), np.int32(n)], ((n + 63) // 64,))
    r = r.array(1, "f4").reshape(n, 16).astype("f8")
    d = x.astype("f8")
    exact = {0: np.exp(d), 2: 1 / np.sqrt(np.abs(d)), 3: 1 / d, 6: 1 / d}
    for column, value in exact.items():
        relative = np.abs(r[:, column] / value - 1)
        assert relative.max() < (1e-5 if column == 0 else 6e-7)
    # The fast forms differ from the rounded exact ones as they do on a GPU; the _rn form does not.
    assert (r[:, 0] != np.exp(d).astype("f4")).mean() > 0.2
    assert (r[:, 2] != (1 / np.sqrt(np.abs(d))).astype("f4")).mean() > 0.2
    assert (r[:, 6] == (1 / d).astype("f4")).all()
    assert np.abs(r[:, 1] - np.log(np.abs(d))).max() < 2e-6
    assert np.abs(r[:, 5] - np.sin(d)).max() < 5e-6
    total = d + np.float64(np.float32(1e-3))
    assert (np.abs(r[:, 7]) <= np.abs(total)).all()
    assert (
        np.abs(np.nextafter(r[:, 7].astype("f4"), (np.sign(total) * np.inf).astype("f4")).astype("f8")) > np.abs(total)
    ).all()
    assert (r[:, 8] >= total).all()
    assert (r[:, 9] <= d * d).all()
    assert (np.nextafter(r[:, 9].astype("f4"), np.float32(np.inf)).astype("f8") > d * d).all()
    assert (r[:, 10] == np.clip(d, 0, 1)).all()
    assert np.abs(r[:, 11] - np.sin(np.pi * d)).max() < 1e-5
    torch_x = torch.from_numpy(d)
    assert np.abs(r[:, 12] - torch.special.ndtr(torch_x).numpy()).max() < 1e-6
    special = torch.erf(torch_x) + torch.tanh(torch_x) + torch.clamp(torch_x - 1, min=0) + torch.cos(np.pi * torch_x)
    assert np.abs(r[:, 13] - special.numpy()).max() < 2e-5
    assert (r[:, 14] <= d * d + 1).all()
    assert np.abs(r[:, 15] - np.sin(d) * np.cos(d)).max() < 1e-6


def test_half_rounds_once(library):
    g = torch.Generator().manual_seed(3)
    bits = torch.randint(0, 0x7BFF, (2, 4000), generator=g, dtype=torch.int16)
    signs = torch.randint(0, 2, (2, 4000), generator=g) * -32768
    a, c = (bits + signs.to(torch.int16)).view(torch.float16)
    n = a.numel()
    raw = [x.contiguous().view(torch.int16).numpy() for x in (a, c)]
    r = launch(
        library, "half_arithmetic", [*raw, ("scratch", 12 * n)], [b(0), b(1), b(2), np.int32(n)], ((n + 63) // 64,)
    )
    got = torch.from_numpy(r.array(2, "i2").copy()).view(torch.float16).reshape(n, 6)
    x, y = a.double(), c.double()
    product = x * y  # exact
    fused = product + x
    expected = [(x + y), product, (x / y), fused, x.abs().sqrt(), (a.float().double() * 3 + 1).float().double()]
    for column, value in enumerate(expected):
        with np.errstate(over="ignore"):
            want = value.numpy().astype("f2")
        if column == 3:
            # Where the double sum itself is inexact the fused result may differ from rounding it again.
            exact = torch.from_numpy(np.isclose((fused - product).numpy(), x.numpy(), rtol=0, atol=0))
            assert exact.float().mean() > 0.3
            assert (got[:, column][exact].numpy().view("i2") == want[exact.numpy()].view("i2")).all()
        else:
            assert (got[:, column].numpy().view("i2") == want.view("i2")).all(), column


def test_bfloat_rounds_once(library):
    g = torch.Generator().manual_seed(4)
    a, c = torch.randn(2, 4000, generator=g).to(torch.bfloat16)
    n = a.numel()
    raw = [x.contiguous().view(torch.int16).numpy() for x in (a, c)]
    r = launch(
        library, "bfloat_arithmetic", [*raw, ("scratch", 8 * n)], [b(0), b(1), b(2), np.int32(n)], ((n + 63) // 64,)
    )
    got = torch.from_numpy(r.array(2, "i2").copy()).view(torch.bfloat16).reshape(n, 4)
    assert torch.equal(got[:, 0], a + c)
    assert torch.equal(got[:, 1], a * c)
    assert torch.equal(got[:, 3], (a.float() / 3).to(torch.bfloat16))
    error = (got[:, 2].double() - (a.double() * c.double() + a.double())).abs()
    assert (error <= 2.0**-8 * got[:, 2].double().abs() + 1e-30).all()


def test_half_pairs(library):
    a = np.random.default_rng(5).standard_normal((64, 2)).astype("f2")
    r = launch(library, "half_pairs", [a, ("scratch", 256)], [b(0), b(1)]).array(1, "f2").reshape(64, 2)
    inner = (np.float16(1) + a[:, ::-1]).astype("f2")
    assert (r == (a.astype("f8") ** 2 + inner.astype("f8")).astype("f2")).all()


def test_vector_loads_and_limits(library):
    a = np.random.default_rng(6).standard_normal((64, 4)).astype("f4")
    r = launch(library, "vector_loads", [a, ("scratch", a.nbytes)], [b(0), b(1)])
    assert (r.array(1, "f4").reshape(64, 4) == a[:, ::-1]).all()
    assert (out(library, "lowest_of_limits", 64, "f4") == -np.finfo("f4").max).all()


def test_device_heap(library):
    assert (out(library, "device_heap", 64, "i4") == t64 + 1).all()


def test_asynchronous_copies(library):
    a = np.random.default_rng(8).standard_normal((4, 32, 4)).astype("f4")
    r = launch(library, "double_buffer<true>", [a, ("scratch", 128)], [b(0), b(1)], block=(32,))
    expected = np.zeros(32, "f4")
    for k in range(4):
        expected += np.roll(a[k, :, 0], -1)
    assert (r.array(1, "f4") == expected).all()
    forgotten = run(
        library, [a, ("scratch", 128)], [(KERNELS.index("double_buffer<false>"), (1,), (32,), [b(0), b(1)])]
    )
    assert forgotten.status == "uninitialised_read" or not (forgotten.array(1, "f4") == expected).all()


def test_print_and_assert(library):
    assert (out(library, "printing_and_asserting", 64, "i4") == 3).all()
    r = run(library, [("scratch", 260)], [(KERNELS.index("printing_and_asserting"), (1,), (65,), [b(0)])])
    assert r.status == "trap"
    assert r.report["message"] == "assertion failed: threadIdx.x < 64"
    assert r.report["thread"] == [64, 0, 0]


UNSERVED = {
    "inline PTX": 'unsigned lane; asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane)); out[0] = lane;',
    "dynamic tiles": "auto tile = cooperative_groups::tiled_partition(cooperative_groups::this_thread_block(), 16); tile.sync();",
    "tiles of several warps": "cooperative_groups::tiled_partition<64>(cooperative_groups::this_thread_block()).sync();",
    "texture": "out[0] = tex1Dfetch<int>(0, 1);",
    "wrong matrix shape": "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 8, 16, float> f; out[0] = f.num_elements;",
    "float maximum": "atomicMax((float *)out, 1.0f);",
}


@pytest.mark.parametrize("name", UNSERVED)
@pytest.mark.parametrize("kind", ["clang", "gcc"])
def test_what_is_not_served_does_not_compile(kind, name):
    source = "#include <cooperative_groups.h>\n#include <mma.h>\n__global__ void k(int *out) {\n  BODY\n}\n"
    compile_kernels(source.replace("BODY", "out[0] = 1;"), ("k",), kind)
    with pytest.raises(CompileError) as refusal:
        compile_kernels(source.replace("BODY", UNSERVED[name]), ("k",), kind)
    assert "k.cu:" in str(refusal.value)
    if name == "inline PTX":
        assert "inline_PTX_is_not_supported_on_the_CPU" in str(refusal.value)
