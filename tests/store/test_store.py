import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import zlib

import pytest

from truekernel.errors import MachineError, RunDirectoryError
from truekernel.store import Store, claimed


def test_records_come_back_in_key_order(tmp_path):
    store = Store.create(tmp_path / "run", {"version": "1"})
    store.put_many("mutant", {"b": {"x": 1.5}, "a": {"x": float("inf")}})
    store.put_many("mutant", {"b": {"x": 2.5}})
    store.close()
    again = Store.open(tmp_path / "run")
    assert list(again.items("mutant")) == [("a", {"x": float("inf")}), ("b", {"x": 2.5})]
    assert again.keys("mutant") == {"a", "b"}
    assert again.get("mutant", "c") is None
    assert again.meta()["version"] == "1"


def test_a_second_run_in_the_same_directory_is_refused(tmp_path):
    Store.create(tmp_path, {}).close()
    with pytest.raises(RunDirectoryError, match="--resume"):
        Store.create(tmp_path, {})


def test_no_run_other_version_and_unusable_paths(tmp_path):
    with pytest.raises(RunDirectoryError, match="holds no run"):
        Store.open(tmp_path)
    Store.create(tmp_path / "old", {}).close()
    connection = sqlite3.connect(tmp_path / "old" / "run.sqlite")
    connection.execute("UPDATE meta SET value = ? WHERE key = 'format'", (json.dumps(99),))
    connection.commit()
    connection.close()
    with pytest.raises(RunDirectoryError, match="format 99"):
        Store.open(tmp_path / "old")
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunDirectoryError, match="not a directory"):
        Store.create(tmp_path / "file" / "run", {})
    (tmp_path / "garbage").mkdir()
    (tmp_path / "garbage" / "run.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(RunDirectoryError):
        Store.open(tmp_path / "garbage")


def test_what_was_put_survives_a_kill(tmp_path):
    code = (
        "import sys, pathlib\nfrom truekernel.store import Store\ns = Store.create(pathlib.Path(sys.argv[1]), {})\n"
        "for i in range(10**6):\n    s.put_many('n', {str(i): i})\n    print(i, flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    said = [int(process.stdout.readline()) for _ in range(20)]
    time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    said += [int(line) for line in process.stdout.read().split("\n")[:-1]]
    process.stdout.close()
    process.wait()
    kept = Store.open(tmp_path / "run").keys("n")
    assert {str(i) for i in said} <= kept


def test_a_full_disk_is_the_machines_failure_and_loses_nothing(tmp_path):
    store = Store.create(tmp_path / "run", {})
    store.put_many("mutant", {"kept": 1})
    (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(MachineError, match="--resume"):
        store.put_many("mutant", {str(i): [os.urandom(64).hex() for _ in range(64)] for i in range(64)})
    store.close()
    again = Store.open(tmp_path / "run")
    assert dict(again.items("mutant")) == {"kept": 1}
    again.put_many("mutant", {"more": 2})
    assert again.keys("mutant") == {"kept", "more"}
    again.close()


def broken(directory, statement, *values):
    """Change a run's file behind the store's back."""
    connection = sqlite3.connect(directory / "run.sqlite")
    connection.execute(statement, values)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("UPDATE records SET value = ?", (b"no zlib",)),
        ("UPDATE records SET value = 5", ()),
        ("UPDATE records SET value = ?", (zlib.compress(b"{no json"),)),
        ("DROP TABLE records", ()),
    ],
)
def test_damaged_records_are_refused_in_one_line(tmp_path, statement, values):
    store = Store.create(tmp_path, {})
    store.put_many("mutant", {"a": {"x": 1}})
    store.close()
    broken(tmp_path, statement, *values)
    store = Store.open(tmp_path)
    for read in (lambda: list(store.items("mutant")), lambda: store.get("mutant", "a")):
        with pytest.raises(RunDirectoryError, match=r"is damaged \(.*\): start a new one"):
            read()
    store.close()


def test_damaged_meta_is_refused_and_a_missing_key_is_another_version(tmp_path):
    Store.create(tmp_path, {"plan": 1}).close()
    store = Store.open(tmp_path)
    with pytest.raises(RunDirectoryError, match=r"another version.*'device'"):
        store.meta()["device"]
    assert store.meta().get("device") is None
    store.close()
    broken(tmp_path, "UPDATE meta SET value = '{' WHERE key = 'plan'")
    with pytest.raises(RunDirectoryError, match="is damaged"):
        Store.open(tmp_path)
    broken(tmp_path, "DROP TABLE meta")
    with pytest.raises(RunDirectoryError, match=r"is damaged.*no such table"):
        Store.open(tmp_path)


def test_zeroed_pages_are_refused_or_read_in_full(tmp_path):
    store = Store.create(tmp_path, {})
    wanted = {f"{k:04}": {"x": os.urandom(200).hex()} for k in range(400)}
    store.put_many("mutant", wanted)
    store.close()
    path = tmp_path / "run.sqlite"
    whole = path.read_bytes()
    refused = 0
    for page in range(0, len(whole) // 4096, 3):
        path.write_bytes(whole[: page * 4096] + bytes(4096) + whole[(page + 1) * 4096 :])
        try:
            store = Store.open(tmp_path)
            try:
                found = dict(store.items("mutant"))
            finally:
                store.close()
        except RunDirectoryError as error:
            refused += 1
            assert "\n" not in str(error)
        else:
            assert all(wanted[key] == value for key, value in found.items())
    assert refused > 10


def test_a_run_that_cannot_be_written_can_be_read(tmp_path, monkeypatch):
    store = Store.create(tmp_path, {"plan": 1})
    store.put_many("mutant", {"a": {"x": 1}})
    monkeypatch.setattr(os, "access", lambda *_: False)
    for _ in range(2):  # with a log beside the file, then without
        reader = Store.open(tmp_path)
        assert dict(reader.items("mutant")) == {"a": {"x": 1}}
        with pytest.raises(RunDirectoryError, match="readonly"):
            reader.put_many("mutant", {"b": {}})
        reader.close()
        before = (tmp_path / "run.sqlite").read_bytes()
        store.close()
    assert (tmp_path / "run.sqlite").read_bytes() == before


def test_a_run_may_start_in_the_place_of_another_that_nobody_uses(tmp_path):
    first = Store.create(tmp_path, {"plan": 1})
    with pytest.raises(RunDirectoryError, match="in use"):
        Store.create(tmp_path, {"plan": 2}, instead=True)
    first.close()
    second = Store.create(tmp_path, {"plan": 2}, instead=True)
    assert second.meta()["plan"] == 2
    second.close()


def test_a_directory_is_one_processes_at_a_time(tmp_path):
    Store.create(tmp_path, {}).close()
    hold = f"from pathlib import Path; from truekernel.store import claimed\nwith claimed(Path({str(tmp_path)!r})): print('mine', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "mine\n"
        with pytest.raises(RunDirectoryError, match="in use by another audit"), claimed(tmp_path):
            pass
        other.kill()
    with claimed(tmp_path):
        pass
