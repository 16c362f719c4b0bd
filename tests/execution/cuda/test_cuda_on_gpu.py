"""What only a GPU can show: real kernels in real workers. Run with -m gpu on a machine that has one."""

from pathlib import Path

import pytest
import torch

from truekernel.errors import GpuMemoryError
from truekernel.execution import cuda
from truekernel.execution.cuda.sanitiser import sanitise
from truekernel.model import BufferArg, BufferSpec, Configuration, Launch, LaunchPlan, ScalarArg
from truekernel.numerics import statistics
from truekernel.numerics.digest import digest
from truekernel.numerics.expected import Expected

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="no NVIDIA GPU"),
]
N = 10_007
GOOD = "__global__ void k(const float* x, float* y, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = x[i] * 2.0f;\n}\n"
INPUTS = {"x": torch.arange(N, dtype=torch.float32) / 7 + 1}
TRUTH = INPUTS["x"].double() * 2
EXPECTED = [Expected("y", "float32", "value", TRUTH.float(), TRUTH, TRUTH.abs() * 2.0**-24)]


def plan(n=N, shared=0, cooperative=False, block=256):
    buffers = (BufferSpec("x", (n,), "float32", "input"), BufferSpec("y", (n,), "float32", "empty"))
    args = (BufferArg(0), BufferArg(1), ScalarArg("int", n))
    return LaunchPlan(buffers, (Launch("k", (-(-n // 256), 1, 1), (block, 1, 1), args, shared, cooperative),), (1,))


def compiled(source, **options):
    library = cuda.compile_single(source, ["k"], cuda.Options(**options))
    assert isinstance(library, cuda.Library), str(library)
    return library


def with_line(text):
    return GOOD.replace("  if (i < n)", f"  {text}\n  if (i < n)")


@pytest.fixture(scope="module")
def server():
    with cuda.Server() as server:
        server.define("case", plan(), INPUTS, EXPECTED, [torch.full((N,), 5.0)])
        assert server.watch(compiled(GOOD), "case")
        yield server


def one(server, source, key="case", **configuration):
    run = server.run(compiled(source), 0, [(key, Configuration(**configuration))], cpu_seconds=0.5, keep_outputs=True)
    return run.executions[0], run.outputs[0]


def test_statistics_and_digest_are_those_of_the_host(server):
    for source in (GOOD, GOOD.replace("2.0f", "2.001f"), GOOD.replace("i < n", "i < n - 3")):
        execution, outputs = one(server, source)
        wanted = statistics(outputs, EXPECTED, "poison")
        for name, value in wanted.items():
            assert execution.statistics[name] == pytest.approx(value, rel=1e-9), name
        assert execution.output_hash == digest(outputs)


def test_unwritten_elements_hold_poison_or_what_was_there(server):
    source = GOOD.replace("i < n", "i < n - 3")
    execution, _ = one(server, source)
    assert execution.statistics["unwritten"] == 3
    execution, outputs = one(server, source, fill="stale")
    assert outputs[0][-3:].tolist() == [5.0] * 3
    assert execution.statistics["unwritten"] == 0


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("if (i == 0) y[1ll << 40] = 1.0f;", "out_of_bounds"),
        ("if (i == 0) *(volatile float*)((char*)y + 1) = 1.0f;", "misaligned"),
        ("if (i == 3) __trap();", "trap"),
        ("if (i == 0) while (*(volatile const float*)x != 12345.0f) {}", "timeout"),
    ],
)
def test_fault_is_named_and_the_next_kernel_is_right(server, line, status):
    execution, outputs = one(server, with_line(line))
    assert execution.outcome.status == status
    assert outputs is None
    execution, outputs = one(server, GOOD)
    assert execution.outcome.status == "ok"
    assert torch.equal(outputs[0], INPUTS["x"] * 2)


@pytest.mark.parametrize(
    ("line", "hazard"),
    [
        ("if (i == 0) y[n] = 1.0f;", f"out_of_bounds: wrote behind buffer 'y' at byte {4 * N}"),
        ("if (i == 0) y[-1] = 1.0f;", "out_of_bounds: wrote before buffer 'y' at byte -4"),
        ("if (i == 0) const_cast<float*>(x)[n - 1] += 1.0f;", "out_of_bounds: wrote to input buffer 'x'"),
    ],
)
def test_stray_write_is_a_hazard(server, line, hazard):
    execution, _ = one(server, with_line(line))
    assert execution.outcome.status == "ok"
    assert execution.hazards == (hazard,)
    assert one(server, GOOD)[0].hazards == ()


def test_launches_that_a_gpu_refuses_and_those_that_need_an_attribute(server):
    server.define("much", plan(shared=100 * 1024), INPUTS, EXPECTED)
    server.define("too much", plan(shared=228 * 1024), INPUTS, EXPECTED)
    server.define("bounds", plan(block=256), INPUTS, EXPECTED)
    server.define("cooperative", plan(cooperative=True), INPUTS, EXPECTED)
    assert one(server, GOOD, "much")[0].outcome.status == "ok"
    assert one(server, GOOD, "cooperative")[0].outcome.status == "ok"
    refused, _ = one(server, GOOD, "too much")
    assert (refused.outcome.status, refused.outcome.message[:14]) == ("trap", "launch refused")
    refused, _ = one(server, GOOD.replace("void k", "void __launch_bounds__(64) k"), "bounds")
    assert (refused.outcome.status, refused.outcome.message[:14]) == ("trap", "launch refused")


def test_case_that_does_not_fit_is_named_with_a_size_that_fits(server):
    n = (cuda.device_info().memory // 4) * 2
    buffers = (BufferSpec("x", (N,), "float32", "input"), BufferSpec("y", (n,), "float32", "empty"))
    args = (BufferArg(0), BufferArg(1), ScalarArg("int", N))
    large = LaunchPlan(buffers, (Launch("k", (1, 1, 1), (256, 1, 1), args),), (1,))
    server.define("huge", large, INPUTS)
    with pytest.raises(GpuMemoryError, match=r"case 'huge' needs .* GiB .* shrink"):
        one(server, GOOD, "huge")
    assert one(server, GOOD)[0].outcome.status == "ok"


def test_flaky_kernel_shows_in_repeats(server):
    ticking = GOOD.replace("x[i] * 2.0f", "x[i] + (clock64() & 255)")
    assert server.repeat(compiled(ticking), "case", Configuration(), 10).differing > 0
    assert server.repeat(compiled(GOOD), "case", Configuration(), 10).differing == 0


def test_sanitiser_finds_an_overrun_of_one_element_and_nothing_in_a_good_kernel():
    sources = (GOOD, with_line("if (i == 0) y[n] = 1.0f;"), GOOD)
    jobs = [cuda.Job(compiled(source, checked=True), plan(), INPUTS) for source in sources]
    first, second, third = sanitise(jobs, ["memcheck"])
    assert not first.findings
    assert not third.findings
    found = second.findings[0]
    assert (found.status, found.line, found.buffer, found.offset) == ("out_of_bounds", 3, 1, 4 * N)
