import contextlib
import ctypes
import os
import signal
import subprocess
import threading

import numpy as np
import pytest
import torch
from coverage_child import in_child

from truekernel.errors import BadInputError, MachineError
from truekernel.execution.simt.toolchain import default_compiler
from truekernel.fuzz.coverage.breakpoints import Breakpoints, demangled
from truekernel.fuzz.coverage.elf import function_table
from truekernel.fuzz.coverage.native import NativeFunctions, torch_library

FUNCTIONS = 400


@pytest.fixture(scope="module")
def torch_functions():
    return NativeFunctions()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A library of 400 small functions that `all` calls, and `total`, which adds up bytes that stand among code and a symbol calls a function."""
    folder = tmp_path_factory.mktemp("many")
    one = "__attribute__((noinline)) static int f{0}(int x) {{ return {0} * x + 1; }}\n"
    source = "".join(one.format(number) for number in range(FUNCTIONS))
    source += "static int (*const calls[])(int) = {" + ",".join(f"f{n}" for n in range(FUNCTIONS)) + "};\n"
    source += "int all(int x) { int sum = 0; for (int i = 0; i < sizeof calls / sizeof *calls; i++) sum += calls[i](x); return sum; }\n"
    source += '__asm__(".text\\n.globl table\\n.type table,@function\\ntable: .byte 1,2,3,4\\n.size table,4\\n");\n'
    source += (
        "extern const unsigned char table[]; int total(void) { return table[0] + table[1] + table[2] + table[3]; }\n"
    )
    source += 'void stop(void) { __asm__ volatile("int3"); }\n'
    (folder / "many.c").write_text(source)
    command = [*default_compiler().command, "-x", "c", "-O1", "-fPIC", "-shared", "-fasynchronous-unwind-tables"]
    subprocess.run([*command, str(folder / "many.c"), "-o", str(folder / "many.so")], check=True)
    library = ctypes.CDLL(str(folder / "many.so"))
    return library, NativeFunctions((folder / "many.so",))


def reached(source, function):
    source.begin()
    with contextlib.suppress(RuntimeError):
        function()
    return source.end()


def reflect(amount):
    return torch.nn.functional.pad(torch.ones(1, 3, 4), (amount, amount), mode="reflect")


def test_only_what_is_new_is_told(torch_functions):
    def child():
        torch_functions.start()
        return [
            len(reached(torch_functions, function))
            for function in (
                lambda: torch.ones(3).cumsum(0),
                lambda: torch.ones(3).cumsum(0),
                lambda: torch.ones(3, dtype=torch.bfloat16).cumsum(0),
                lambda: torch.linalg.eigvalsh(torch.eye(3)),
            )
        ]

    first, repeated, other_dtype, other_operator = in_child(child)
    assert first > 20
    assert repeated == 0
    assert 0 < other_dtype < 100
    assert other_operator > 20


def test_an_error_path_is_new(torch_functions):
    def child():
        torch_functions.start()
        fine = reached(torch_functions, lambda: reflect(1))
        refused = reached(torch_functions, lambda: reflect(9))
        again = reached(torch_functions, lambda: reflect(9))
        return len(fine), len(refused), len(again)

    fine, refused, again = in_child(child)
    assert fine > 5
    assert refused > 0
    assert again == 0


def results():
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(6, 6, generator=generator)
    made = [
        x.softmax(0),
        x @ x,
        torch.linalg.inv(x),
        torch.fft.fft(x),
        torch.sort(x).values,
        x.to(torch.bfloat16).sum(),
    ]
    made += [
        torch.nn.functional.conv1d(
            x[None], x[:, :3, None].contiguous()[:, :, 0].expand(6, 3)[:2, :1, None].repeat(1, 6, 1)
        )
    ]
    y = x.clone().requires_grad_()
    torch.linalg.svdvals(y).sum().backward()
    made.append(y.grad)
    try:
        torch.linalg.inv(torch.zeros(2, 2))
    except RuntimeError as error:
        made.append(str(error))
    return [
        part.numpy(force=True).tobytes()
        if part.__class__ is torch.Tensor and part.dtype != torch.bfloat16
        else str(part)
        for part in made
    ]


def test_results_are_those_of_an_unwatched_process(torch_functions):
    def watched():
        torch_functions.start()
        torch_functions.begin()
        first = results()
        assert len(torch_functions.end()) > 100
        return first, results()

    plain = in_child(results)
    assert in_child(watched) == (plain, plain)


def test_results_stay_when_only_unwind_tables_say_where_functions_begin():
    points = Breakpoints((function_table(torch_library(), names=False),))

    def watched():
        points.map()
        points.own(7)
        first = results()
        return first, len(points.log(0, 7)), results(), points.name(points.log(0, 7)[0])

    plain = in_child(results)
    first, functions, again, name = in_child(watched)
    assert (first, again) == (plain, plain)
    assert functions > 100
    assert name.startswith("libtorch_cpu.so+0x")


def test_what_a_killed_process_reached_is_known(torch_functions):
    def child():
        torch_functions.start()
        torch_functions.begin()
        torch.linalg.cholesky(torch.eye(4))
        os.kill(os.getpid(), signal.SIGKILL)

    torch_functions.begin()
    assert torch_functions.end() == []
    assert in_child(child, dies=True) == signal.SIGKILL
    seen = torch_functions.end()
    assert any("cholesky" in torch_functions.name(function) for function in seen)

    def after():
        torch_functions.start()
        return reached(torch_functions, lambda: torch.linalg.cholesky(torch.eye(4)))

    assert in_child(after) == []


def test_executors_do_not_tell_each_other_s_functions(torch_functions):
    other = NativeFunctions()

    def child():
        other.start()
        return reached(other, lambda: torch.ones(5).logcumsumexp(0))

    torch_functions.begin()
    mine = in_child(child)
    assert len(mine) > 5
    assert torch_functions.end() == []
    assert other.end() == mine


def test_threads_enter_each_function_once(small):
    library, source = small
    expected = library.all(3)

    def child():
        source.start()
        rounds = []
        for _ in range(20):
            source.breakpoints.rearm()
            barrier = threading.Barrier(4)
            answers = []

            def run(barrier=barrier, answers=answers):
                barrier.wait()
                answers.append(library.all(3))

            threads = [threading.Thread(target=run) for _ in range(4)]
            source.begin()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            seen = source.end()
            rounds.append((len(seen), len(set(seen)), answers))
        return rounds

    assert in_child(child) == [(FUNCTIONS + 1, FUNCTIONS + 1, [expected] * 4)] * 20


def test_processes_of_processes_are_watched(small):
    library, source = small

    def grandchild():
        library.all(1)
        os.kill(os.getpid(), signal.SIGKILL)

    def child():
        source.start()
        source.breakpoints.rearm()
        source.begin()
        in_child(grandchild, dies=True)
        return len(source.end()), library.all(1)

    assert in_child(child) == (FUNCTIONS + 1, library.all(1))


def test_data_among_code_stays_what_it_is(small):
    library, source = small

    def child():
        source.start()
        source.breakpoints.rearm()
        return library.total(), len(reached(source, library.total))

    assert in_child(child)[0] == 10


def test_other_traps_end_the_process_as_ever(small):
    library, source = small

    def child():
        source.start()
        library.stop()

    def sent():
        source.start()
        os.kill(os.getpid(), signal.SIGTRAP)

    assert in_child(child, dies=True) == signal.SIGTRAP
    assert in_child(sent, dies=True) == signal.SIGTRAP


def test_a_handler_that_was_there_before_gets_other_traps(small):
    _, source = small

    def child():
        got = []
        signal.signal(signal.SIGTRAP, lambda number, frame: got.append(number))
        source.start()
        os.kill(os.getpid(), signal.SIGTRAP)
        return got

    assert in_child(child) == [signal.SIGTRAP]


def test_what_is_forgotten_is_not_told(small):
    library, source = small

    def child():
        source.start()
        source.breakpoints.rearm()
        everything = reached(source, lambda: library.all(1))
        source.breakpoints.rearm()
        source.forget(everything[:-5])
        rest = reached(source, lambda: library.all(1))
        return everything, rest

    everything, rest = in_child(child)
    assert rest == everything[-5:]


def test_nonsense_in_shared_memory_is_not_believed(small):
    _, source = small
    points = source.breakpoints
    kept = points._words.copy()
    points._words[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
    assert points.log(0, 0xFFFFFFFF) == []
    points._words[:] = kept


def test_the_parent_is_not_watched(torch_functions):
    before = torch_functions.entered()
    torch.ones(3, 3).matrix_exp()
    assert torch_functions.entered() == before


def test_one_process_is_watched_once(small, torch_functions):
    _, source = small

    def child():
        source.start()
        source.start()
        with pytest.raises(MachineError, match="watched already"):
            torch_functions.start()
        return True

    assert in_child(child)


def test_a_library_that_is_not_loaded_is_refused(small, tmp_path):
    path = tmp_path / "copy.so"
    path.write_bytes(small[1].breakpoints.tables[0].path.read_bytes())
    with pytest.raises(BadInputError, match="not loaded"):
        Breakpoints((function_table(path),))


def test_memory_that_differs_from_the_file_is_left_alone(small):
    _, source = small
    table = source.breakpoints.tables[0]
    table.first_bytes[3] ^= 1
    armed = Breakpoints((table,)).armed
    table.first_bytes[3] ^= 1
    assert armed == source.breakpoints.armed - 1


def test_names_are_those_of_the_source():
    assert demangled("_ZN2at3addERKNS_6TensorES2_") == "at::add(at::Tensor const&, at::Tensor const&)"
    assert demangled("plain") == "plain"
