import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from truekernel.errors import MachineError, RunDirectoryError
from truekernel.store import Store


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
