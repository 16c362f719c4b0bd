"""What a kernel does wrong is named, with its place; what it does right is not called wrong."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from simt_bench import SCHEDULES, b, compile_kernels, run

SOURCE = Path(__file__).with_name("simt_outcomes.cu").read_text()
NAMES = re.findall(r"__global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\(", SOURCE)
TEMPLATES = {
    "last_block": ["last_block<true>", "last_block<false>"],
    "chained_scan": [f"chained_scan<{a}, {f}>" for a in ("true", "false") for f in ("true", "false")],
}
KERNELS = tuple(expression for name in NAMES for expression in TEMPLATES.get(name, [name]))
i4, f4 = np.int32, np.float32


def library(kind="clang", checked=False):
    return compile_kernels(SOURCE, KERNELS, kind, checked)


def launched(
    kernel, buffers, args, *, kind="clang", checked=False, grid=(1,), block=(32,), shared=0, schedule="gpu", seconds=2.0
):
    launch = (KERNELS.index(kernel), grid, block, args, shared)
    return run(library(kind, checked), buffers, [launch], schedule, seconds=seconds)


@pytest.fixture(params=["clang", "gcc"])
def kind(request):
    return request.param


def line_of(text):
    return SOURCE[: SOURCE.index(text)].count("\n") + 1


def test_checked_bounds_are_exact(kind):
    for i in (-1, 100, 5000, -5000):
        r = launched("write_at", [("scratch", 400)], [b(0), i4(i)], kind=kind, checked=True, block=(1,))
        assert r.status == "out_of_bounds"
        assert (r.report["buffer"], r.report["offset"], r.report["write"]) == (0, 4 * i, 1)
        assert r.line() == line_of("x[i] = 1.0f")
    for i in (0, 99):
        assert (
            launched("write_at", [("scratch", 400)], [b(0), i4(i)], kind=kind, checked=True, block=(1,)).status == "ok"
        )


def test_plain_slack_is_a_hazard_and_beyond_it_a_fault(kind):
    for i, side in ((-1, 1), (100, 2), (-1000, 1), (1100, 2)):
        r = launched("write_at", [("scratch", 400)], [b(0), i4(i)], kind=kind, block=(1,))
        assert r.status == "ok"
        assert [h[:2] for h in r.report["hazards"]] == [[side, 0]]
        assert abs(r.report["hazards"][0][2] - 4 * i) < 4
    for i in (-2000, 5000, 2**31 - 1, -(2**31)):
        r = launched("write_at", [("scratch", 400)], [b(0), i4(i)], kind=kind, block=(1,))
        assert r.status == "out_of_bounds"
        assert r.report["offset"] == 4 * i
        assert r.line() == line_of("x[i] = 1.0f")
    r = launched("read_at", [np.zeros(4, "f4"), ("scratch", 4)], [b(0), b(1), i4(10**6)], kind=kind, block=(1,))
    assert (r.status, r.report["write"]) == ("out_of_bounds", 0)


def test_thread_and_block_are_named():
    r = launched("same_element", [("scratch", 96 * 4)], [b(0), i4(1)], grid=(3000,), block=(32,))
    assert r.status == "out_of_bounds"
    element = r.report["offset"] // 4
    assert r.report["block"] == [element // 32, 0, 0]
    assert r.report["thread"] == [element % 32, 0, 0]


def test_written_input_is_a_hazard():
    r = launched("write_input", [np.zeros(8, "f4"), ("scratch", 4)], [b(0), b(1)], block=(1,))
    assert r.status == "ok"
    assert r.report["hazards"] == [[3, 0, 12]]
    assert r.array(1, "f4")[0] == 7


@pytest.mark.parametrize("kernel", ["write_dynamic", "neighbouring_arrays"])
def test_shared_bounds(kind, kernel):
    for i, status in ((31, "ok"), (32, "out_of_bounds"), (-1, "out_of_bounds")):
        if kernel == "neighbouring_arrays" and i < 0:
            continue  # what lies before a variable depends on the order in which the linker places them
        r = launched(kernel, [("scratch", 128)], [b(0), i4(i)], kind=kind, checked=True, shared=128)
        assert r.status == status, r.report
        if status != "ok":
            assert r.report["buffer"] == -2
            assert r.report["name"] == ("first" if kernel == "neighbouring_arrays" else "dynamic shared memory")


@pytest.mark.parametrize(
    ("i", "j", "said", "where"),
    [
        (32, 0, "index 32 of 'float[32]'", "near[i] = 1.0f"),
        (-1, 0, "index -1 of 'float[32]'", "near[i] = 1.0f"),
        (0, 4, "index 4 of 'float[4]'", "near[threadIdx.x] + local[j]"),
    ],
)
def test_overruns_of_arrays_tell_index_and_line(i, j, said, where):
    r = launched("two_arrays", [("scratch", 128)], [b(0), i4(i), i4(j)], checked=True, block=(1,))
    assert (r.status, r.report["message"], r.line()) == ("out_of_bounds", said, line_of(where))
    inside = launched("two_arrays", [("scratch", 128)], [b(0), i4(0), i4(3)], checked=True, block=(1,))
    assert inside.status == "ok" and inside.report["hazards"] == []


def test_wild_pointers(kind):
    for checked in (False, True):
        r = launched("null_pointer", [("scratch", 4)], [b(0), i4(1)], kind=kind, checked=checked, block=(1,))
        assert r.status == "out_of_bounds"
        assert "null" in r.report["message"] or "null" in str(r.report), r.report
        assert (
            launched("null_pointer", [("scratch", 4)], [b(0), i4(0)], kind=kind, checked=checked, block=(1,)).status
            == "ok"
        )
        r = launched("far_pointer", [("scratch", 4)], [b(0), np.int64(2**60)], kind=kind, checked=checked, block=(1,))
        assert r.status == "out_of_bounds"


def test_alignment(kind):
    for checked in (False, True):
        args = {"kind": kind, "checked": checked, "block": (1,)}
        assert launched("vector_at", [np.zeros(16, "f4"), ("scratch", 4)], [b(0), b(1), i4(4)], **args).status == "ok"
        r = launched("vector_at", [np.zeros(16, "f4"), ("scratch", 4)], [b(0), b(1), i4(3)], **args)
        assert r.status == "misaligned"
        # clang merges the traps of one function, and with them their lines.
        assert r.line() in (line_of("const float4 v"), None if kind == "gcc" else 0)
        assert (
            launched("half_pair_at", [np.zeros(16, "f2"), ("scratch", 4)], [b(0), b(1), i4(2)], **args).status == "ok"
        )
        r = launched("half_pair_at", [np.zeros(16, "f2"), ("scratch", 4)], [b(0), b(1), i4(3)], **args)
        assert r.status == "misaligned"
        assert launched("atomic_at", [("zeroed", 16)], [b(0), i4(4)], **args).status == "ok"
        assert launched("atomic_at", [("zeroed", 16)], [b(0), i4(2)], **args).status == "misaligned"


RACES = [
    ("reverse_block", lambda good: ([np.arange(64, dtype=i4), ("scratch", 256)], [b(0), b(1), i4(good)]), (1,), (64,)),
    ("same_element", lambda good: ([("scratch", 4 * 128)], [b(0), i4(good)]), (2,), (64,)),
    ("same_element", lambda good: ([("scratch", 4 * 128)], [b(0), i4(good)]), (2,), (1,)),
    ("sum_up", lambda good: ([("zeroed", 4)], [b(0), i4(good)]), (2,), (64,)),
    ("warp_exchange", lambda good: ([("scratch", 128)], [b(0), i4(good)]), (1,), (32,)),
    ("half_warp_then_all", lambda good: ([("scratch", 128)], [b(0), i4(1 if good else 16)]), (1,), (32,)),
    ("histogram_then_read", lambda good: ([("scratch", 32)], [b(0), i4(good)]), (1,), (64,)),
]


@pytest.mark.parametrize("case", RACES, ids=lambda c: f"{c[0]}-{c[2]}-{c[3]}")
@pytest.mark.parametrize("schedule", ["gpu", "reverse", "random"])
def test_races(kind, case, schedule):
    kernel, make, grid, block = case
    for good in (True, False):
        buffers, args = make(good)
        r = launched(kernel, buffers, args, kind=kind, checked=True, grid=grid, block=block, schedule=schedule)
        if good:
            assert r.status == "ok", (r.report, r.line())
        else:
            # An element that nobody has written yet when it is read too early is an uninitialised read.
            assert r.status in ("race", "uninitialised_read"), r.report
            assert r.line() is not None
            if kernel in ("same_element", "sum_up", "histogram_then_read"):
                assert r.status == "race"


def test_half_warp_synchronises_itself(kind):
    assert launched("half_warp_exchange", [("scratch", 128)], [b(0)], kind=kind, checked=True).status == "ok"


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_hand_over_to_the_last_block(kind, schedule):
    x = np.arange(640, dtype="f4")
    for checked in (False, True):
        options = {"kind": kind, "checked": checked, "grid": (10,), "block": (64,), "schedule": schedule}
        r = launched("last_block<true>", [x, ("scratch", 40), ("scratch", 4)], [b(0), b(1), b(2)], **options)
        assert r.status == "ok", (r.report, r.line())
        assert r.array(2, "f4")[0] == x.sum()
        r = launched("last_block_all_store", [x, ("scratch", 2560), ("scratch", 256)], [b(0), b(1), b(2)], **options)
        assert r.status == "ok", (r.report, r.line())
        assert (r.array(2, "f4") == x.reshape(10, 64).sum(0)).all()
    r = launched("last_block<false>", [x, ("scratch", 40), ("scratch", 4)], [b(0), b(1), b(2)], **options)
    assert r.status == "race"
    assert r.line() == line_of("total += partial[i]")


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("atomic", ["true", "false"])
def test_blocks_wait_for_one_another(kind, schedule, atomic):
    x = np.arange(1, 21, dtype=i4)
    buffers = [x, ("scratch", 80), ("scratch", 80), ("zeroed", 80)]
    args = [b(0), b(1), b(2), b(3)]
    for checked in (False, True):
        options = {"kind": kind, "checked": checked, "grid": (20,), "block": (64,), "schedule": schedule}
        r = launched(f"chained_scan<{atomic}, true>", buffers, args, **options)
        assert r.status == "ok", (r.report, r.line())
        assert (r.array(1, "i4") == np.cumsum(x)).all()
    r = launched(f"chained_scan<{atomic}, false>", buffers, args, **options)
    assert r.status == "race"


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_spinning(kind, schedule):
    for checked in (False, True):
        options = {"kind": kind, "checked": checked, "schedule": schedule, "seconds": 5.0}
        r = launched(
            "wait_for_last_block", [("zeroed", 4), ("scratch", 4 * 40 * 32)], [b(0), b(1)], grid=(40,), **options
        )
        assert r.status == "ok", (r.report, r.line())
        r = launched("spin_within_block", [("scratch", 4)], [b(0)], block=(64,), **options)
        assert r.status == "ok", (r.report, r.line())
        assert r.array(0, "i4")[0] == 42
        r = launched("spin_lock", [("zeroed", 4)], [b(0)], grid=(3,), block=(64,), **options)
        assert r.status == "ok", (r.report, r.line())
        assert r.array(0, "i4")[0] == 192


def test_first_reads(kind):
    for kernel, buffers in (
        ("read_shared_first", [("scratch", 128)]),
        ("read_scratch_first", [("scratch", 128), ("scratch", 128)]),
    ):
        pointers = [b(i) for i in range(len(buffers))]
        assert launched(kernel, buffers, [*pointers, i4(1)], kind=kind, checked=True).status == "ok"
        r = launched(kernel, buffers, [*pointers, i4(0)], kind=kind, checked=True)
        assert r.status == "uninitialised_read"
        assert r.report["buffer"] == (-2 if kernel == "read_shared_first" else 0)
    assert (
        launched("read_scratch_first", [("zeroed", 128), ("scratch", 128)], [b(0), b(1), i4(0)], checked=True).status
        == "ok"
    )


def test_barrier_divergence(kind):
    first, second = (
        line_of("if (threadIdx.x < limit) __syncthreads();\n  out"),
        line_of("  __syncthreads();\n}\n__global__ void early"),
    )
    for checked, schedule in ((True, "gpu"), (False, "forward"), (False, "random")):
        options = {"kind": kind, "checked": checked, "schedule": schedule}
        r = launched("divergent_barrier", [("scratch", 128)], [b(0), i4(8)], **options)
        assert r.status == "barrier_divergence"
        assert r.line() in (first, second)
        assert launched("divergent_barrier", [("scratch", 128)], [b(0), i4(32)], **options).status == "ok"
        assert launched("early_exit", [("scratch", 128)], [b(0), i4(20)], **options).status == "ok"
    # A GPU only counts arrivals: its schedule goes on and leaves a hazard.
    r = launched("divergent_barrier", [("scratch", 128)], [b(0), i4(8)], kind=kind)
    assert r.status == "ok"
    assert r.report["divergence_line"] in (first, second)
    assert launched("divergent_barrier", [("scratch", 128)], [b(0), i4(32)], kind=kind).report["divergence_line"] == 0


def test_deadlock_and_masks(kind):
    for checked in (False, True):
        options = {"kind": kind, "checked": checked}
        r = launched("barrier_and_shuffle", [("scratch", 128)], [b(0), i4(16)], **options)
        assert r.status == "deadlock"
        assert r.line() == line_of("v = __shfl_sync(0xffffffff, v, 0);\n  else")
        assert launched("barrier_and_shuffle", [("scratch", 128)], [b(0), i4(32)], **options).status == "ok"
        r = launched("wrong_mask", [("scratch", 128)], [b(0), np.uint32(0xFFFF)], **options)
        assert r.status == "trap"
        assert r.report["thread"] == [16, 0, 0]
        assert launched("wrong_mask", [("scratch", 128)], [b(0), np.uint32(0xFFFFFFFF)], **options).status == "ok"


def test_shuffle_from_a_lane_that_takes_no_part(kind):
    r = launched("shuffle_from", [("scratch", 128)], [b(0), i4(20)], kind=kind)
    assert r.report["lane_line"] == line_of("v = __shfl_sync(0xffff, ")
    r = launched("shuffle_from", [("scratch", 128)], [b(0), i4(15)], kind=kind)
    assert r.report["lane_line"] == 0
    assert list(r.array(0, "i4")) == [15] * 16 + [0] * 16


def test_what_a_host_does_otherwise(kind):
    for checked in (False, True):
        options = {"kind": kind, "checked": checked, "block": (1,)}
        for kernel, bad, good in (
            ("divide", i4(0), i4(3)),
            ("shift", i4(32), i4(31)),
            ("shift", i4(-1), i4(0)),
            ("to_int", f4(3e9), f4(2e9)),
            ("to_int", f4(np.nan), f4(0)),
        ):
            r = launched(kernel, [("zeroed", 8)], [b(0), bad], **options)
            assert r.status == "host_differs", (kernel, r.report)
            assert launched(kernel, [("zeroed", 8)], [b(0), good], **options).status == "ok"
        r = launched("wrap", [("zeroed", 4)], [b(0), i4(2**31 - 1)], **options)
        assert r.array(0, "i4")[0] == 1


HOSTILE = [
    ("trap", [i4(1)], "trap", "__trap"),
    ("endless", [i4(0)], "timeout", ""),
    ("endless_empty", [i4(0)], "timeout", ""),
    ("recursion", [i4(2**30)], "crash", "stack overflow"),
    ("recursion_after_barrier", [i4(2**30)], "crash", "stack overflow"),
    ("smash", [i4(200)], "crash", ""),
    ("call_exit", [i4(0)], "trap", "system call"),
    ("call_quick_exit", [i4(3)], "trap", "system call exit"),
    ("call_fork", [], "trap", "system call fork"),
    ("call_abort", [], ("crash", "trap"), ""),
    ("call_kill", [], "trap", "system call execve"),
    ("call_address", [np.int64(12345)], "crash", "jump"),
    ("call_address", [np.int64(2**62)], ("crash", "out_of_bounds"), ""),
    ("big_static", [], "trap", "launch refused"),
]


@pytest.mark.parametrize("case", HOSTILE, ids=lambda c: f"{c[0]}-{c[1][0] if c[1] else ''}")
def test_hostile_kernels(kind, case):
    kernel, scalars, status, message = case
    for checked in (False, True):
        r = launched(kernel, [("zeroed", 128)], [b(0), *scalars], kind=kind, checked=checked, seconds=0.2)
        assert r.status in ((status,) if isinstance(status, str) else status), r.report
        assert message in r.report["message"]


TAME = [
    ("trap", i4(0)),
    ("endless", i4(1)),
    ("endless_empty", i4(1)),
    ("recursion", i4(100)),
    ("smash", i4(8)),
    ("call_exit", i4(-1)),
]


@pytest.mark.parametrize("case", TAME, ids=lambda c: c[0])
def test_the_same_kernels_made_tame(kind, case):
    kernel, scalar = case
    for checked in (False, True):
        r = launched(kernel, [("zeroed", 128)], [b(0), scalar], kind=kind, checked=checked, seconds=0.5, block=(1,))
        assert r.status == "ok", r.report


REFUSED = [
    {"block": (1025,)},
    {"block": (32, 33)},
    {"grid": (0,)},
    {"grid": (1, 65536)},
    {"shared": 228 * 1024},
    {"block": (1, 1, 65)},
]


@pytest.mark.parametrize("geometry", REFUSED, ids=str)
def test_launches_that_a_gpu_refuses(geometry):
    r = launched("trap", [("scratch", 128)], [b(0), i4(0)], **geometry)
    assert r.status == "trap"
    assert r.report["message"].startswith("launch refused")
    accepted = {"grid": (2,), "block": (1024,), "shared": 227 * 1024}
    assert launched("trap", [("scratch", 128)], [b(0), i4(0)], **accepted).status == "ok"


def test_same_schedule_same_bits():
    x = np.random.default_rng(7).standard_normal(640).astype("f4")
    for schedule in SCHEDULES:
        buffers, args = [x, ("scratch", 2560), ("scratch", 256)], [b(0), b(1), b(2)]
        first, second = (
            launched("last_block_all_store", buffers, args, grid=(10,), block=(64,), schedule=schedule)
            for _ in range(2)
        )
        assert first.buffers == second.buffers
