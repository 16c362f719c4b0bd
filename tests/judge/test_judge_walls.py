"""Each wall keeps what it says, and without it the same attempt succeeds."""

import ast
import contextlib
import dataclasses
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import truekernel
from truekernel.judge.session import _python_policy
from truekernel.judge.walls import landlock, seccomp
from truekernel.judge.walls.policy import MIB, Limits, Policy, base_environment, interpreter_paths, python_policy
from truekernel.judge.walls.probing import PROGRAM, attempts, probe, probe_policy
from truekernel.judge.walls.process import Confined, run

PYTHON = (sys.executable, "-I", "-S", "-c")
WALLS = {
    "capabilities",
    "control groups",
    "environment",
    "files",
    "ipc",
    "landlock",
    "limits",
    "network",
    "own /proc",
    "processes",
    "system calls",
    "user",
}


def policy(**limits):
    return Policy((*Policy().readable, *interpreter_paths()), environment=base_environment(), limits=Limits(**limits))


def reached(*without):
    found, finished = attempts(dataclasses.replace(probe_policy(), without=without))
    assert found, finished
    assert found.pop("honest") == "332833500"
    return {name for name, got in found.items() if got}


def test_nothing_gets_through():
    assert reached() == set()


def test_every_wall_is_listed_and_tried():
    walls = probe()
    assert {wall.name for wall in walls} == WALLS
    assert all(wall.up and wall.detail for wall in walls if wall.name != "control groups")


def test_hidden_folders_are_empty(tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "shown").mkdir()
    (tmp_path / "shown" / "hidden").mkdir()
    for name in ("shown/a", "shown/hidden/b"):
        (tmp_path / name).write_text("here")
    given = dataclasses.replace(policy(), readable=(*policy().readable, str(tmp_path)))
    text = f"import os; print(sorted(name for _, _, names in os.walk({str(tmp_path)!r}) for name in names))"
    hidden = dataclasses.replace(given, hidden=(str(tmp_path / "shown" / "hidden"), str(tmp_path / "nowhere")))
    assert run(given, (*PYTHON, text), seconds=20).output.split() == ["['a',", "'b']"]
    assert run(hidden, (*PYTHON, text), seconds=20).output.split() == ["['a']"]


def test_a_candidate_can_not_import_the_judge_where_that_is_installed_beside_torch():
    _, given = _python_policy()
    package = Path(truekernel.__file__).parent
    given = dataclasses.replace(given, readable=(*given.readable, str(package)))
    text = f"import sys; sys.path.insert(0, {str(package.parent)!r}); import truekernel.errors; print('found')"
    assert "No module named 'truekernel.errors'" in run(given, (*PYTHON, text), seconds=20).output
    shown = dataclasses.replace(given, hidden=())
    assert run(shown, (*PYTHON, text), seconds=20).output == "found\n"


def test_network():
    assert "network" in reached("network", "system calls", "landlock")
    for alone in ("network", "system calls", "landlock"):
        assert "network" not in reached(*{"network", "system calls", "landlock"} - {alone}), alone


def test_abstract_sockets():
    assert "abstract socket" in reached("network", "landlock")
    assert "abstract socket" not in reached("network")


def test_files():
    shown = reached("files", "landlock", "processes", "user")
    assert {"secret file", "system file", "home"} <= shown
    assert not {"secret file", "system file", "home"} & reached("landlock")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs files that only Landlock keeps away")
def test_landlock_alone_keeps_files():
    assert landlock.version() >= 1
    assert not {"secret file", "system file", "home"} & reached("files", "processes", "user")


def test_processes_of_the_caller():
    everything = ("files", "landlock", "processes", "user")
    assert "caller's signals" in reached(*everything)
    assert "caller's signals" not in reached("files", "landlock", "user")


def test_environment_of_the_caller(monkeypatch):
    monkeypatch.setenv("TRUEKERNEL_SECRET", "1")
    finished = run(
        policy(),
        [*PYTHON, "import os; print(sorted(os.environ), open('/proc/self/environ').read().count('SECRET'))"],
        seconds=10,
    )
    assert "SECRET" not in finished.output
    assert finished.output.strip().endswith(" 0")
    given = dataclasses.replace(policy(), environment={**base_environment(), "TRUEKERNEL_SECRET": "1"})
    assert "SECRET" in run(given, [*PYTHON, "import os; print(sorted(os.environ))"], seconds=10).output


def test_memory_and_environment_of_the_caller_in_proc():
    code = f"import os; print(sorted(p for p in os.listdir('/proc') if p.isdigit()), os.path.exists('/proc/{os.getpid()}'))"
    assert run(policy(), [*PYTHON, code], seconds=10).output.split() == ["['1',", "'2']", "False"]
    assert Path(f"/proc/{os.getpid()}").exists()


def test_system_calls():
    assert "tracing" in reached("system calls")
    call = "import ctypes; print(ctypes.CDLL(None).syscall({number}, 0, 0, 0, 0, 0))"
    for name in ("bpf", "unshare", "mount", "keyctl", "io_uring_setup", "process_vm_readv"):
        finished = run(policy(), [*PYTHON, call.format(number=seccomp.REFUSED[name])], seconds=10)
        assert finished.output.strip() == "-1", name
    memfd = "import os; print(os.memfd_create('x') > 2)"
    assert run(policy(), [*PYTHON, memfd], seconds=10).output.strip() == "True"


def test_new_namespaces_and_threads():
    clone = "import ctypes; print(ctypes.CDLL(None).syscall(56, 0x10000000 | 17, 0, 0, 0, 0))"
    assert run(policy(), [*PYTHON, clone], seconds=10).output.strip() == "-1"
    thread = "import threading; t = threading.Thread(target=lambda: print('ran')); t.start(); t.join()"
    assert run(policy(), [*PYTHON, thread], seconds=10).output.strip() == "ran"


FORKS = """
import os, time
made = 0
try:
    while made < 100:
        if not os.fork():
            time.sleep(60)
            os._exit(0)
        made += 1
except OSError:
    pass
print(made)
"""


def test_a_fork_bomb_ends():
    start = time.monotonic()
    finished = run(policy(processes=20), [*PYTHON, FORKS], seconds=10)
    assert int(finished.output) < 20
    assert time.monotonic() - start < 5
    assert int(run(policy(processes=120), [*PYTHON, FORKS], seconds=10).output) == 100


@pytest.mark.parametrize("without", [("control groups",), ("limits",)])
def test_a_fork_bomb_ends_by_either_limit(without):
    if without == ("limits",) and not control_groups():
        pytest.skip("no control groups here")
    limited = dataclasses.replace(policy(processes=20), without=without)
    assert int(run(limited, [*PYTHON, FORKS], seconds=10).output) < 20


def control_groups():
    return any(wall.up for wall in run(policy(), [*PYTHON, ""], seconds=10).walls if wall.name == "control groups")


MEMORY = """
import os, time
children = 4
for _ in range(children):
    if not os.fork():
        held = bytearray({each} << 20)
        time.sleep(0.5)
        os._exit(0)
for _ in range(children):
    os.wait()
print("through")
"""


@pytest.mark.parametrize("without", [(), ("control groups",)])
def test_memory_of_all_processes_together(without):
    limited = dataclasses.replace(policy(memory=150 * MIB), without=without)
    over = run(limited, [*PYTHON, MEMORY.format(each=60)], seconds=10)
    # The kernel ends single processes, of which the first one inside hears nothing.
    assert str(over.ended) == "took more memory than it may" or (not without and "through" in over.output)
    within = run(limited, [*PYTHON, MEMORY.format(each=5)], seconds=10)
    assert within.ended.good
    assert within.output == "through\n"


def test_one_process_over_the_memory_limit():
    over = run(policy(memory=100 * MIB), [*PYTHON, "x = bytearray(300 << 20); print(len(x))"], seconds=10)
    assert str(over.ended) == "took more memory than it may"
    assert run(policy(memory=500 * MIB), [*PYTHON, "x = bytearray(300 << 20); print(len(x))"], seconds=10).ended.good


def test_disk():
    fill = "open('/tmp/x', 'wb').write(bytes({size} << 20)); print('written')"
    assert "written" not in run(policy(disk=8 * MIB), [*PYTHON, fill.format(size=20)], seconds=10).output
    many = "import sys\nfor k in range(20): open(f'/tmp/{k}', 'wb').write(bytes(1 << 20))\nprint('written')"
    assert "No space left" in run(policy(disk=8 * MIB), [*PYTHON, many], seconds=10).output
    assert "written" in run(policy(disk=64 * MIB), [*PYTHON, fill.format(size=20)], seconds=10).output


def test_endless_loops_and_floods_end():
    start = time.monotonic()
    assert str(run(policy(), [*PYTHON, "while True: pass"], seconds=0.7).ended) == "did not end in time"
    assert time.monotonic() - start < 4
    flood = run(policy(output=1000), [*PYTHON, "for _ in range(300): print('x' * 100000)"], seconds=20)
    assert flood.ended.good
    assert len(flood.output) == 1000


def test_the_cpu_limit():
    finished = run(policy(cpu_seconds=1), [*PYTHON, "while True: pass"], seconds=20)
    assert str(finished.ended) in ("ended with signal 24", "ended with signal 9")


def test_nothing_stays_behind(tmp_path):
    mark = f"truekernel-mark-{os.getpid()}"
    code = f"import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\nmark = '{mark}'\ntime.sleep(60)"
    assert run(policy(), [*PYTHON, code], seconds=10).ended.good
    assert not marked(mark)
    confined = Confined(policy(), [*PYTHON, f"mark = '{mark}'; import time; time.sleep(60)"])
    assert marked(mark)
    confined.close()
    assert not marked(mark)
    assert not list(Path(tempfile.gettempdir()).glob(f"{mark}*"))


def marked(mark):
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and int(entry.name) != os.getpid() and mark in (entry / "cmdline").read_text():
                found.append(entry.name)
    return found


def test_how_it_ended():
    assert str(run(policy(), [*PYTHON, "import os; os._exit(3)"], seconds=10).ended) == "ended with exit status 3"
    assert (
        str(run(policy(), [*PYTHON, "import os; os.kill(os.getpid(), 11)"], seconds=10).ended) == "ended with signal 11"
    )
    assert (
        run(policy(), [*PYTHON, "import sys; print(sys.stdin.read())"], seconds=10, stdin=b"given").output == "given\n"
    )


def test_the_first_process_inside_can_not_be_ended():
    assert "not permitted" in run(policy(), [*PYTHON, "import os; os.kill(1, 9)"], seconds=10).output
    assert "Permission denied" in run(policy(), [*PYTHON, "open('/proc/1/mem', 'rb')"], seconds=10).output


def test_nothing_runs_as_root_or_may_become_it():
    code = "import os; print(os.getuid(), os.getgroups(), [l.split()[1] for l in open('/proc/self/status') if l.startswith(('CapEff', 'CapBnd', 'NoNewPrivs'))])"
    uid, rest = run(policy(), [*PYTHON, code], seconds=10).output.split(" ", 1)
    assert int(uid) != 0
    assert rest.strip().endswith("['0000000000000000', '0000000000000000', '1']")


def test_an_honest_program_runs_unchanged():
    code = "import torch; x = torch.arange(12.0).reshape(3, 4); print((x @ x.T).sum().item(), torch.softmax(x, 1).sum().item())"
    finished = run(python_policy(), [sys.executable, "-I", "-c", code], seconds=60)
    bare = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert finished.output == bare.stdout
    assert finished.output.startswith("1134.0")
    assert finished.ended.good


SYSTEM_PYTHON = "/usr/bin/python3"


@pytest.mark.skipif(
    os.geteuid() != 0 or not Path(SYSTEM_PYTHON).exists() or not shutil.which("setpriv"),
    reason="needs root, setpriv and a Python that every user may start",
)
def test_a_caller_without_privileges_has_the_same_walls():
    source = str(Path(landlock.__file__).parents[3])
    code = f"import sys; sys.path.insert(0, {source!r}); from truekernel.judge.walls.probing import probe; print([(w.name, w.up) for w in probe()])"
    user = ["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups"]
    done = subprocess.run([*user, SYSTEM_PYTHON, "-I", "-c", code], capture_output=True, text=True, check=False)
    if "truekernel" in done.stderr:
        pytest.skip("this user can't read the package")
    down = {name for name, up in ast.literal_eval(done.stdout) if not up}
    assert down <= {"control groups"}


def test_descriptors_that_are_not_given_are_closed():
    read, write = os.pipe()
    try:
        os.set_inheritable(write, True)
        code = f"import os; os.write({write}, b'x')"
        kept = Confined(policy(), [*PYTHON, code], keep=(write,))
        assert kept.wait(10).good
        assert os.read(read, 1) == b"x"
        assert "Bad file descriptor" in run(policy(), [*PYTHON, code], seconds=10).output
    finally:
        os.close(read)
        os.close(write)


def test_a_listener_of_ours_can_be_reached_without_walls():
    # Negative control of the probing program itself.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        socket.create_connection(("127.0.0.1", listener.getsockname()[1]), 2).close()
    assert "truekernel-probe" in PROGRAM
