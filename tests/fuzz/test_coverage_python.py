import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from coverage_child import in_child
from library_of_controls import case, install

from truekernel.errors import BadInputError, UnknownNameError
from truekernel.fuzz.coverage import KINDS, make
from truekernel.fuzz.coverage.lines import PythonLines
from truekernel.fuzz.coverage.memory import SeenLog
from truekernel.fuzz.coverage.overloads import Overloads
from truekernel.fuzz.executor import Executor


def reached(source, function):
    source.begin()
    function()
    return source.end()


def test_overloads_are_told_once_and_in_order():
    source = Overloads()
    x = torch.ones(3, 4)
    assert reached(source, lambda: torch.softmax(x + 1, 1)) == ["aten::add.Tensor", "aten::_softmax"]
    assert reached(source, lambda: torch.softmax(x + 1, 1)) == []
    assert reached(source, lambda: x + x.cumsum(0)) == ["aten::cumsum"]


def test_overloads_below_gradients_are_told():
    source = Overloads()

    def backward():
        torch.nn.functional.layer_norm(torch.ones(2, 4, requires_grad=True), (4,)).sum().backward()

    assert "aten::native_layer_norm_backward" in reached(source, backward)


def test_what_is_called_outside_of_a_case_is_not_told():
    source = Overloads()
    source.begin()
    source.end()
    torch.ones(2).sin()
    source.begin()
    assert source.end() == []
    assert reached(source, lambda: torch.ones(2).sin()) == ["aten::ones", "aten::sin"]


def test_watched_calls_give_the_same_results_and_errors():
    source = Overloads()
    x = torch.randn(5, 5, generator=torch.Generator().manual_seed(1))
    source.begin()
    watched = torch.linalg.inv(x)
    with pytest.raises(RuntimeError, match="singular"):
        torch.linalg.inv(torch.zeros(2, 2))
    seen = source.end()
    assert torch.equal(watched, torch.linalg.inv(x))
    assert "aten::linalg_inv_ex" in seen


def test_overloads_that_were_seen_in_another_run_are_not_told():
    source = Overloads()
    source.forget(["aten::sin", "aten::no_such_overload"])
    assert reached(source, lambda: torch.ones(2).sin().cos()) == ["aten::ones", "aten::cos"]
    assert source.total() > 3000


def test_overloads_of_a_killed_process_are_known():
    source = Overloads()

    def child():
        source.start()
        source.begin()
        torch.ones(3).tan()
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(child, dies=True) == signal.SIGKILL
    assert source.end() == ["aten::ones", "aten::tan"]


def test_watching_overloads_does_not_import_the_compiler():
    script = (
        "import sys, torch\n"
        "from truekernel.fuzz.coverage.overloads import Overloads\n"
        "source = Overloads()\n"
        "source.begin()\n"
        "torch.ones(2)\n"
        "print(source.end(), 'torch._dynamo' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "['aten::ones'] False\n"


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "watched_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "inner.py").write_text("def sign(x):\n    if x < 0:\n        return -1\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "watched_package"
    for name in ("watched_package", "watched_package.inner"):
        sys.modules.pop(name, None)


def test_lines_are_told_once_and_in_order(package):
    from watched_package.inner import sign

    source = PythonLines((package,))
    assert reached(source, lambda: sign(3)) == [f"watched_package.inner:{line}" for line in (2, 4)]
    assert reached(source, lambda: sign(4)) == []
    assert reached(source, lambda: sign(-1)) == ["watched_package.inner:3"]
    assert reached(source, lambda: sign(-1)) == []


def test_lines_of_other_packages_are_not_told(package):
    import json

    assert reached(PythonLines((package,)), lambda: json.dumps([1])) == []


def test_lines_that_were_seen_in_another_run_are_not_told(package):
    from watched_package.inner import sign

    source = PythonLines((package,))
    source.forget(["watched_package.inner:2", "gone:5", "nonsense"])
    assert reached(source, lambda: sign(3)) == ["watched_package.inner:4"]


def test_a_tracer_that_was_there_comes_back(package):
    source = PythonLines((package,))
    before = sys.gettrace()
    reached(source, lambda: None)
    assert sys.gettrace() is before


def test_lines_of_a_killed_process_are_known(package):
    from watched_package.inner import sign

    source = PythonLines((package,))

    def child():
        source.start()
        source.begin()
        sign(1)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(child, dies=True) == signal.SIGKILL
    assert source.end() == [f"watched_package.inner:{line}" for line in (2, 4)]


def test_compiled_code_gives_the_same_results_while_lines_are_watched():
    source = PythonLines()

    def child():
        import torch._dynamo

        def function(x):
            return torch.relu(x).softmax(0) * 2

        x = torch.linspace(-1, 1, 12).reshape(3, 4)
        plain = torch.compile(function, backend="aot_eager")(x)
        torch._dynamo.reset()
        source.begin()
        watched = torch.compile(function, backend="aot_eager")(x)
        seen = source.end()
        torch._dynamo.reset()
        source.begin()
        torch.compile(function, backend="aot_eager")(x)
        return torch.equal(plain, watched), len(seen), len(source.end()), sorted({line.split(".")[1] for line in seen})

    same, first, again, packages = in_child(child)
    assert same
    assert first > 300
    assert again < first / 10
    assert "_dynamo" in ",".join(packages)


def test_a_package_that_is_not_there_is_refused():
    with pytest.raises(BadInputError, match="can't be found"):
        PythonLines(("torch._no_such_package",))


def test_a_log_that_a_wild_process_overwrote_gives_nothing():
    log = SeenLog(4)
    log.begin()
    log.add(2)
    log.add(2)
    assert log.since() == [2]
    assert 2 in log
    log._log[0] = 1 << 40
    assert log.since() == []


def test_sources_are_made_by_kind():
    torch_library, other = SimpleNamespace(name="torch"), SimpleNamespace(name="other")
    assert [source.kind for source in make(KINDS, torch_library)] == list(KINDS)
    with pytest.raises(UnknownNameError, match="'function'"):
        make(("function",), torch_library)
    assert make(KINDS, other) == []


@pytest.mark.parametrize("judging", [True, False])
def test_the_executor_watches_what_oracles_run_where_a_source_asks_for_it(monkeypatch, judging):
    library = install(monkeypatch)
    source = PythonLines(("truekernel.fuzz.oracles.determinism",))
    source.judging = judging
    with Executor(library, oracles=("determinism",), coverage=(source,)) as executor:
        report = executor.run(case("honest"))
    assert report.asked == ("determinism",)
    assert bool(report.new["lines"]) == judging
