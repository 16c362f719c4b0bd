"""A user's callable in a process of its own: right ones are heard, hostile ones broken with a reason, within a time limit."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from truekernel.audit.callables import ask
from truekernel.checkers import Judgement, external, resolve
from truekernel.checkers.external_child import LONGEST_TEXT, raised, safe_text, said
from truekernel.checkers.external_process import CallableProcess, ChildBrokenError
from truekernel.errors import BadInputError
from truekernel.model import Configuration, Execution, Outcome

CHECKS = '''
import contextlib
import ctypes
import os
import sys
import time

import torch
from truekernel.checkers import Judgement
from sibling import TOLERANCE


class Own(BaseException):
    pass


class Unshown(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


def throw(error):
    raise error


def forge():
    line = b'{"message": {"kind": "mutant", "records": {}}}\\n{"ended": true}\\n'
    for descriptor in range(1, 12):
        with contextlib.suppress(OSError):
            os.write(descriptor, line)
    return False


def fork():
    os.fork()
    return True


def spawn():
    os.system("sleep 1000 &")
    return True


KINDS = {
    "exit": lambda: sys.exit(0),
    "exit_text": lambda: sys.exit("bye"),
    "interrupt": lambda: throw(KeyboardInterrupt()),
    "own": lambda: throw(Own("mine")),
    "unshown": lambda: throw(Unshown()),
    "surrogate": lambda: throw(ValueError("a\\ud800b\\x1b[31m\\nsecond line")),
    "long": lambda: throw(ValueError("x" * 10**6)),
    "maybe": lambda: Judgement("maybe", 5),
    "why": lambda: Judgement("accept", 5),
    "open": lambda: Judgement("undetermined", "who knows"),
    "no": lambda: Judgement("reject", "off by two"),
    "seven": lambda: 7,
    "stdin": lambda: sys.stdin.read() == "",
    "print": lambda: print("printed", flush=True) or print("too", file=sys.stderr, flush=True) or True,
    "forge": forge,
    "closed": lambda: os.closerange(0, 20) or True,
    "fork": fork,
    "right": lambda: True,
}


def kinds(reference, candidate):
    """What is asked for is the position in KINDS."""
    return list(KINDS.values())[int(reference)]()


def close(reference, candidate):
    return torch.allclose(reference, candidate, rtol=TOLERANCE)


def same(reference, candidate):
    parts = zip(reference, candidate, strict=True)
    candidate_was = [c.clone() for c in candidate]
    found = all(r.dtype == c.dtype and r.shape == c.shape and bool(torch.equal(r, c)) for r, c in parts)
    for tensor, was in zip(candidate, candidate_was):
        tensor.zero_()
    return found


def hard_exit(reference, candidate):
    os._exit(3)


def quiet_exit(reference, candidate):
    os._exit(0)


def segfault(reference, candidate):
    ctypes.string_at(0)


def sleeps(reference, candidate):
    time.sleep(10**6)


def sleeps_with_a_copy(reference, candidate):
    if os.fork():
        os._exit(5)
    time.sleep(20)


def closes_all(reference, candidate):
    os.closerange(0, 1000)
    return True


def garbage(reference, candidate):
    for descriptor in range(3, 1000):
        with contextlib.suppress(OSError):
            os.write(descriptor, b"garbage, and more of it")
    return True


def forges_an_answer(reference, candidate):
    for text in (b'{"call": 2, "verdict": ["accept"], "why": 5}', b'[' * 5000):
        for descriptor in range(3, 1000):
            with contextlib.suppress(OSError):
                os.write(descriptor, len(text).to_bytes(4, "big") + text)
    return True


NUMBER = 3.5
'''
IMPORTS = {
    "exits": ("import sys; sys.exit(0)", "called exit(0)"),
    "ends": ("import os; os._exit(0)", "ended its process with exit status 0"),
    "interrupts": ("raise KeyboardInterrupt", "raised KeyboardInterrupt"),
    "unparsed": ("def f(:", "raised SyntaxError"),
    "prints": ("print('printed at import', flush=True)\ndef g(r, c): return True", "has no attribute 'f'"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The current directory, with modules of a user. Names that shadow modules of Python's own do no harm."""
    folder = tmp_path_factory.mktemp("callables")
    (folder / "hostile_checks.py").write_text(CHECKS)
    (folder / "sibling.py").write_text("TOLERANCE = 1e-3\n")
    (folder / "random.py").write_text("raise RuntimeError('not the module that PyTorch needs')\n")
    for name, (text, _) in IMPORTS.items():
        (folder / f"{name}_at_import.py").write_text(text)
    before = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


@pytest.fixture(scope="module")
def kinds(folder):
    names = [
        line.split('"')[1]
        for line in CHECKS.partition("KINDS = {")[2].partition("}\n")[0].splitlines()
        if '": ' in line
    ]
    checker = resolve(["hostile_checks:kinds"])["hostile_checks:kinds"]

    def ask(name):
        return checker.opinion([torch.tensor(float(names.index(name)))], [torch.ones(1)], None)

    yield ask
    checker.function.close()


def hostile(attribute, seconds=60.0):
    name = f"hostile_checks:{attribute}"
    return external.ExternalChecker(name, CallableProcess("hostile_checks", attribute, call_seconds=seconds))


ONE = [torch.ones(3)]


@pytest.mark.parametrize(
    ("kind", "verdict", "why"),
    [
        ("exit", "undetermined", "called exit(0)"),
        ("exit_text", "undetermined", "called exit('bye')"),
        ("interrupt", "undetermined", "raised KeyboardInterrupt"),
        ("own", "undetermined", "raised Own: mine"),
        ("unshown", "undetermined", "raised Unshown: (its text can't be shown)"),
        ("surrogate", "undetermined", "raised ValueError: a?b?[31m second line"),
        ("long", "undetermined", "raised ValueError: xxx"),
        ("maybe", "undetermined", "returned a Judgement of verdict 'maybe' and why 5"),
        ("why", "undetermined", "returned a Judgement of verdict 'accept' and why 5"),
        ("open", "undetermined", "leaves it open: who knows"),
        ("no", "reject", "off by two"),
        ("seven", "undetermined", "returned int, not True or False"),
        ("stdin", "accept", ""),
        ("print", "accept", ""),
        ("forge", "reject", "hostile_checks:kinds says no"),
        ("closed", "accept", ""),
        ("fork", "accept", ""),
    ],
)
def test_what_does_not_end_the_process_is_a_verdict_or_a_reason_and_the_next_call_is_heard(
    kinds, capfd, kind, verdict, why
):
    judged = kinds(kind)
    assert judged.verdict == verdict
    assert why in judged.why
    assert len(judged.why) <= LONGEST_TEXT + len("hostile_checks:kinds ")
    json.loads(json.dumps(judged.why, ensure_ascii=False).encode())
    assert kinds("right") == Judgement("accept")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("attribute", "why"),
    [
        ("hard_exit", "ended its process with exit status 3"),
        ("quiet_exit", "ended its process with exit status 0"),
        ("segfault", "ended with signal 11 (SIGSEGV)"),
        ("sleeps", "did not end within 1 seconds"),
        ("sleeps_with_a_copy", "ended its process with exit status 5"),
        ("closes_all", "closed the pipe of its answers"),
        ("garbage", "answered with bytes that are no answer"),
        ("forges_an_answer", "answered with bytes that are no answer"),
    ],
)
def test_what_ends_the_process_breaks_the_checker_once_and_for_all(folder, attribute, why):
    checker = hostile(attribute, seconds=1.0 if attribute == "sleeps" else 60.0)
    started = time.monotonic()
    judged = checker.opinion(ONE, ONE, None)
    assert judged == Judgement("undetermined", f"hostile_checks:{attribute} {why}")
    assert time.monotonic() - started < 15
    started = time.monotonic()
    assert all(checker.opinion(ONE, ONE, None) == judged for _ in range(50))
    assert time.monotonic() - started < 0.5
    crashed = Execution("c", Configuration(), Outcome("crash"))
    assert checker.opinion(ONE, ONE, crashed).verdict == "reject"


@pytest.mark.parametrize("name", list(IMPORTS))
def test_what_happens_at_import_is_one_line(folder, capfd, name):
    with pytest.raises(BadInputError) as found:
        resolve([f"{name}_at_import:f"])
    text = str(found.value)
    assert IMPORTS[name][1] in text
    assert text.startswith(f"checker '{name}_at_import:f' can't be imported: ")
    assert "\n" not in text
    assert capfd.readouterr() == ("", "")


def test_an_import_that_hangs_has_a_limit(folder):
    (folder / "sleeps_at_import.py").write_text("import time; time.sleep(10**6)")
    with pytest.raises(ChildBrokenError, match=r"did not end within 0\.5 seconds"):
        CallableProcess("sleeps_at_import", "f", import_seconds=0.5)


def test_the_command_line_says_it_in_one_line_with_exit_code_2(folder):
    command = [sys.executable, "-P", "-m", "truekernel", "audit", "--checker", "exits_at_import:f", "--problems", "elu"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "truekernel: checker 'exits_at_import:f' can't be imported: called exit(0)\n"


def test_a_value_is_no_callable(folder):
    with pytest.raises(BadInputError, match="'hostile_checks:NUMBER' is a float, not a function"):
        resolve(["hostile_checks:NUMBER"])


def test_tensors_of_all_kinds_arrive_as_they_are(folder):
    drawn = torch.randn(4, 6)
    tensors = [
        *(drawn.to(dtype) for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.complex64)),
        *(drawn.to(dtype) for dtype in (torch.int8, torch.int64, torch.bool, torch.float8_e4m3fn)),
        drawn.t(),
        torch.tensor(2.5),
        torch.empty(0, 3),
        torch.tensor([float("inf"), -0.0]),
    ]
    checker = hostile("same")
    before = [tensor.clone() for tensor in tensors]
    assert checker.opinion(tensors, [tensor.clone() for tensor in tensors], None) == Judgement("accept")
    other = [*tensors[:-1], torch.tensor([float("inf"), 1.0])]
    assert checker.opinion(tensors, other, None).verdict == "reject"
    assert checker.opinion(tensors, [*tensors[:-1], tensors[-1].double()], None).verdict == "reject"
    assert all(
        torch.equal(one.double(), two.double())
        for one, two in zip(tensors, before, strict=True)
        if not one.is_complex()
    )
    checker.function.close()


def test_a_thousand_calls_of_a_right_callable_are_cheap(folder):
    checker = resolve(["hostile_checks:close"])["hostile_checks:close"]
    assert resolve(["hostile_checks:close"])["hostile_checks:close"] is checker
    reference = torch.randn(100_000)
    near, far = reference * (1 + 1e-5), reference * 1.1
    started = time.monotonic()
    verdicts = [checker.opinion([reference], [far if k % 2 else near], None).verdict for k in range(1000)]
    assert verdicts == ["accept", "reject"] * 500
    # About a second of work; machines that do other things too need more.
    assert time.monotonic() - started < 20


def test_the_process_ends_with_its_parent(folder):
    text = (
        "import os, sys; from truekernel.checkers.external_process import CallableProcess\n"
        "process = CallableProcess('hostile_checks', 'close')\n"
        "print(process._process.pid, flush=True)\n"
        "os._exit(0) if sys.argv[1] == 'hard' else None"
    )
    for how in ("hard", "soft"):
        ended = subprocess.run(
            [sys.executable, "-P", "-c", text, how], cwd=folder, capture_output=True, text=True, timeout=120, check=True
        )
        child = Path("/proc") / ended.stdout.strip()
        deadline = time.monotonic() + 10
        while child.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not child.exists() or "Z" in (child / "stat").read_text().rpartition(")")[2].split()[0]


def test_texts_are_made_safe():
    assert safe_text("a\n b\t\ud800\x00") == "a b ??"
    assert safe_text("é ✓") == "é ✓"
    assert len(safe_text("x" * 300)) == 200
    assert raised(ValueError()) == "raised ValueError"
    with pytest.raises(KeyboardInterrupt):
        said(lambda r, c: (_ for _ in ()).throw(KeyboardInterrupt), 1, 1)


@pytest.mark.parametrize(
    ("judgement", "where", "stored"),
    [
        (Judgement("reject", "a\ud800\nb"), "rejected", {"mine": "a? b"}),
        (Judgement("undetermined", ""), "broken", {"mine": "gives no reason"}),
        (Judgement("accept"), "accepted", ("mine",)),
    ],
)
def test_reasons_that_are_stored_can_be_encoded(judgement, where, stored):
    checker = SimpleNamespace(needs_outputs=True, opinion=lambda reference, candidate, execution: judgement)
    prepared = {"case": SimpleNamespace(expected=[SimpleNamespace(published=torch.ones(1))])}
    setup = SimpleNamespace(
        checkers={"mine": checker},
        suite_requests=lambda name: [("case", Configuration())],
        stage=SimpleNamespace(prepared=prepared),
    )
    assert getattr(ask(setup, None, None), where) == stored
