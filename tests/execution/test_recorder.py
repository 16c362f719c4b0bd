"""Launch plans become data; bad ones are refused with one line that names theirs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truekernel.errors import PlanError
from truekernel.execution.recorder import trace
from truekernel.execution.scalars import TYPES, convert, pack
from truekernel.model import AxisSpec, BufferArg, OutputSpec, Problem, ScalarArg, TensorSpec
from truekernel.source import kernel_signatures

PROBLEM = Problem(
    "shift",
    "elementwise",
    "y = x + a",
    {"N": AxisSpec(1000, 1000, "batch")},
    (TensorSpec("x", ("N",)),),
    (OutputSpec("y", ("N",)),),
    lambda inputs, axes: (inputs["x"],),
    lambda axes: 0,
    lambda axes: 0,
)
SOURCE = """
template <int B, class T> __global__ void shift(const T* x, T* y, T a, int n, size_t m, bool flip) {}
__global__ void by_value(float4 v) {}
"""
PLAN = """import math

def blocks(n, size):
    return (n + size - 1) // size

def launch(run, inputs, axes):
    n = axes["N"]
    y = run.empty((n,), "float32")
    run.launch("shift<256, float>", blocks(n, 256), (256, 1), [inputs["x"].offset(2), y, 1, n, n * 4, n > 3], shared=64)
    return y
"""


def plan(text: str, axes: dict[str, int] | None = None):
    return trace(text, kernel_signatures(SOURCE), PROBLEM, axes or {"N": 1000})


def refusal(old: str, new: str) -> str:
    assert old in PLAN
    with pytest.raises(PlanError) as caught:
        plan(PLAN.replace(old, new))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_records_buffers_launches_and_types():
    recorded = plan(PLAN)
    assert [(b.name, b.shape, b.init) for b in recorded.buffers] == [
        ("x", (1000,), "input"),
        ("empty1", (1000,), "empty"),
    ]
    (launch,) = recorded.launches
    assert (launch.kernel, launch.grid, launch.block, launch.shared) == (
        "shift<256, float>",
        (4, 1, 1),
        (256, 1, 1),
        64,
    )
    assert launch.args == (
        BufferArg(0, 8),
        BufferArg(1, 0),
        ScalarArg("float", 1.0),
        ScalarArg("int", 1000),
        ScalarArg("unsigned long long", 4000),
        ScalarArg("bool", 1),
    )
    assert recorded.outputs == (1,)


def test_a_missing_pointer_is_null_and_negative_values_wrap_into_unsigned():
    (launch,) = plan(PLAN.replace('inputs["x"].offset(2)', "None").replace("n * 4", "-1")).launches
    assert launch.args[0] == ScalarArg("unsigned long long", 0)
    assert launch.args[4] == ScalarArg("unsigned long long", 2**64 - 1)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("(256, 1)", "(1025, 1)", "line 9"),
        ("(256, 1)", "(256, 8)", "2048 threads"),
        ("(256, 1)", "(1, 1, 65)", "at most"),
        ("blocks(n, 256), (", "0, (", "at least 1"),
        ("blocks(n, 256), (", "-3, (", "at least 1"),
        ("blocks(n, 256), (", "(1, 65536), (", "at most"),
        ("blocks(n, 256), (", "n / 256, (", "is not iterable"),
        ("shared=64", "shared=232449", "232448"),
        ("shared=64", "shared=-1", "shared=-1"),
        ("n > 3]", "n > 3, 0]", "takes 6 arguments, 7 given"),
        ("1, n, n * 4", "1, n / 3, n * 4", "use // instead of /"),
        ("1, n, n * 4", "1, 2**31, n * 4", "does not fit into int"),
        ("1, n, n * 4", "1, y, n * 4", "is int"),
        ("y, 1, n", "3, 1, n", "is a pointer"),
        ('"shift<256, float>"', '"shft<256, float>"', "no kernel 'shft'"),
        ('"shift<256, float>"', '"shift<256,"', "not a kernel name"),
        ('inputs["x"]', 'inputs["z"]', "'z'"),
        ('axes["N"]', 'axes["M"]', "'M'"),
        ('"float32"', '"float8"', "dtype 'float8'"),
        ("(n,)", "(n, -1)", "not negative"),
        ("(n,)", "(n, 1 << 40)", "GiB"),
        ("return y", "return inputs", "its outputs (y)"),
        ("return y", "return run.empty(n + 1)", "wanted float32 (1000,)"),
        ("return y", "return y.offset(1)", "from element 1"),
        ("return y", "while True: pass", "does not end"),
        ("return y", "return y.__class__", "not available"),
        ("return y", "return 1 // 0", "ZeroDivisionError"),
        ("return y", "return (y", "line 10"),
        ("import math", "import os", "import math only"),
        ("def launch", "def lunch", "no function launch"),
        ("import math", "open('x')", "NameError"),
        ('"shift<256, float>", blocks(n, 256), (256, 1), [inputs["x"].offset(2), y, 1, n, n * 4, n > 3]',
         '"by_value", 1, 1, [3]', "only scalars and pointers"),
    ],
)  # fmt: skip
def test_bad_plans_are_refused(old: str, new: str, said: str):
    assert said in refusal(old, new)


@given(st.sampled_from(sorted(TYPES)), st.integers(-(2**70), 2**70))
def test_integers_arrive_as_c_would_convert_them_or_are_refused(ctype: str, value: int):
    kind = TYPES[ctype]
    try:
        converted = convert(value, ctype)
    except ValueError:
        assert kind.signed and kind.is_integer and not -(2 ** (kind.bits - 1)) <= value < 2 ** (kind.bits - 1)
        return
    data = pack(converted, ctype)
    if not kind.is_integer:
        return
    assert len(data) == max(1, kind.bits // 8)
    got = int.from_bytes(data, "little", signed=kind.signed)
    assert got == (int(value != 0) if ctype == "bool" else value if kind.signed else value % 2**kind.bits)


def test_bfloat16_rounds_to_nearest_even():
    import torch

    values = [1.0, 1.00390625, 1.01171875, -3.1415926, 3.4e38, 1e-40]
    for value in values:
        wanted = torch.tensor(value, dtype=torch.float32).to(torch.bfloat16).view(torch.int16).item() & 0xFFFF
        assert int.from_bytes(pack(value, "__nv_bfloat16"), "little") == wanted
    assert pack(float("nan"), "__nv_bfloat16") == b"\xff\x7f"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("sum(range(10**12))", "the limit is 1000000 entries"),
        ("10**(10**9)", "more than 64 bits"),
        ("2 << 10**9", "more than 64 bits"),
        ("n = 3\n    n **= 10**9", "more than 64 bits"),
        ("n = [3]\n    n[0] *= 2**63", "more than 64 bits"),
        ('"a" * (10**10)', "the limit is 1000000"),
        ("10**10 * [0]", "the limit is 1000000"),
        ("n = [0]\n    while True: n = n + n", "the limit is 1000000"),
        ("n = [0]\n    while True: n = [*n, *n]", "the limit is 1000000"),
        ("n = 'a'\n    while True: n = f'{n}{n}'", "the limit is 1000000"),
        ('f"{1:1000000000}"', "at most three digits"),
        ('"%1000000000d" % 5', "use an f-string"),
        ('"{:1000000000}".format(5)', "'format' is not available"),
        ("list(map(sum, [range(10**6)] * 1000))", "more than 1000000 entries"),
        ("-" * 5000 + "1", "nested too deeply"),
        ("n = 1" + "+1" * 5000, "nested too deeply"),
        ("inputs['x'].offset(10**18)", "outside of any address space"),
        ("inputs['x'].offset(1e300)", "outside of any address space"),
        ("run.buffers.clear()", "no attribute 'buffers'"),
        ("run.launches.append(5)", "no attribute 'launches'"),
        ("run._signatures", "'_signatures' is not available"),
        ("for k in range(5000): run.empty((1,))", "more than 4096 buffers"),
        ("run.empty((2**40, 2**40))", "GiB in all"),
        ("run.empty([1] * 100)", "100 dimensions"),
        ("try:\n        while True: pass\n    except Exception: pass", "does not end"),
        ("try: pass\n    finally: pass", "'finally' is not available"),
        ("try: pass\n    except: pass", "name the exceptions"),
    ],
)
def test_what_no_plan_needs_ends_in_one_line(line, why):
    marker = "    y = run.empty"
    assert why in refusal(marker, f"    {line}\n{marker}")


def test_ten_thousand_launches_are_enough():
    call = 'run.launch("shift<256, float>", 1, 1, [inputs["x"], y, 1, n, n, True])'
    assert "more than 10000 launches" in refusal("    return y", f"    for _ in range(10001): {call}\n    return y")


def test_bounds_leave_ordinary_arithmetic_alone():
    ordinary = """
    assert 2**10 + (1 << 3) - 7 % 4 == 1029 and 2**-1 == 0.5 and (-2) ** 63 < 0 and pow(2, 3) == 8
    assert [0] * 3 + [*[1, 2]] == [0, 0, 0, 1, 2] and (1, *(2,)) == (1, 2) and f"{n:5.2f}x{n!r}" == "1000.00x1000"
    a = [1, 2]
    a[1] += 3
    a += [4]
    assert a == [1, 5, 4] and isinstance(a, list) and isinstance(range(3), (tuple, range)) and not isinstance(n, float)
    assert sum(k * k for k in range(4)) == 14 and list(map(max, [1, 2], [3, 0])) == [3, 2] and sorted({3, 1}) == [1, 3]
    assert max(n, 3) == n and divmod(7, 2) == (3, 1) and dict(zip("ab", [1, 2])) == {"a": 1, "b": 2}
    first, *rest = a
    assert (first, rest) == (1, [5, 4]) and len(range(5, 0, -2)) == 3
    y = run.empty"""
    assert plan(PLAN.replace("\n    y = run.empty", ordinary)).launches == plan(PLAN).launches
