"""One SQLite file a run: crash-safe, resumable, readable while it is written."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from truekernel.errors import MachineError, RunDirectoryError

FORMAT = 5
"""Format of the run directory; a run of another format is refused, never guessed at."""

IN_USE = "{} is in use by another audit: wait for it, or choose another --run directory"
_FILE = "run.sqlite"
_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS records (kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
"""


class Meta(dict[str, Any]):
    """What was recorded when a run was created. A key that is missing is one that the version which made the run did not know."""

    def __init__(self, directory: Path, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._directory = directory

    def __missing__(self, key: str) -> Any:
        raise RunDirectoryError(
            f"{self._directory} was made by another version (it does not tell '{key}'): start a new --run directory"
        )


def damaged(directory: Path, what: str) -> RunDirectoryError:
    """The error for a run whose file does not hold what was put there."""
    what = " ".join(what.split())
    return RunDirectoryError(f"run directory {directory} is damaged ({what[:200]}): start a new one")


class Store:
    """Records of a run by (kind, key); values are JSON documents, stored compressed.

    Each `put_many` is one transaction, on disk before it returns, so that a killed process loses at most what it had not yet put.
    """

    def __init__(self, directory: Path, connection: sqlite3.Connection) -> None:
        self.directory = directory
        self._connection = connection

    @classmethod
    def create(cls, directory: Path, meta: Mapping[str, Any], *, instead: bool = False) -> Store:
        """A new run in `directory` (made when missing); `instead`: of one that is there. Raises RunDirectoryError when it holds a run already or can't be written."""
        if not instead and holds_run(directory):
            raise RunDirectoryError(
                f"{directory} already holds a run: give --resume to go on with it, or another --run directory"
            )
        with _mended(directory):
            directory.mkdir(parents=True, exist_ok=True)
            # The file appears under its name only when it is complete: a kill in between leaves nothing that looks like a run.
            draft = directory / f".{_FILE}.new"
            draft.unlink(missing_ok=True)
            connection = sqlite3.connect(draft)
            connection.executescript(_TABLES)
            rows = {**meta, "format": FORMAT}
            connection.executemany(
                "INSERT INTO meta VALUES (?, ?)", [(k, json.dumps(v, sort_keys=True)) for k, v in rows.items()]
            )
            connection.commit()
            connection.close()
            if instead:
                _emptied(directory)
            draft.rename(directory / _FILE)
        return cls.open(directory)

    @classmethod
    def open(cls, directory: Path) -> Store:
        """An existing run; one that can't be written can still be read. Raises RunDirectoryError when there is none, when it is damaged, or when another version made it."""
        path = directory / _FILE
        with _mended(directory):
            if not path.is_file():
                raise RunDirectoryError(
                    f"{directory} holds no run: start one with `truekernel audit --run {directory}`"
                )
            connection = _connected(path)
            store = cls(directory, connection)
            try:
                found = store.meta().get("format")
            except BaseException:
                store.close()
                raise
        if found != FORMAT:
            store.close()
            raise RunDirectoryError(
                f"{directory} was made by another version (format {found}, this one reads {FORMAT}): start a new --run directory"
            )
        return store

    def meta(self) -> Meta:
        """What was recorded when the run was created. Raises RunDirectoryError where it can't be read; so does asking it for a key that it lacks."""
        with _mended(self.directory):
            rows = self._connection.execute("SELECT key, value FROM meta").fetchall()
            return Meta(self.directory, {key: json.loads(value) for key, value in rows})

    def put_many(self, kind: str, records: Mapping[str, Any]) -> None:
        """Store `records` by key in one transaction, replacing what had the same key."""
        rows = [
            (kind, key, zlib.compress(json.dumps(value, sort_keys=True).encode(), 6)) for key, value in records.items()
        ]
        with _mended(self.directory):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?)", rows)
                self._connection.execute("COMMIT")
            except sqlite3.Error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def keys(self, kind: str) -> set[str]:
        """Keys of all records of a kind. Raises RunDirectoryError when they can't be read."""
        with _mended(self.directory):
            rows = self._connection.execute("SELECT key FROM records WHERE kind = ?", (kind,)).fetchall()
        return {key for (key,) in rows}

    def get(self, kind: str, key: str) -> Any | None:
        """One record, or None. Raises RunDirectoryError when it can't be read."""
        with _mended(self.directory):
            row = self._connection.execute(
                "SELECT value FROM records WHERE kind = ? AND key = ?", (kind, key)
            ).fetchone()
        return None if row is None else self._unpacked(kind, key, row[0])

    def items(self, kind: str) -> Iterator[tuple[str, Any]]:
        """All records of a kind in the order of their keys. Raises RunDirectoryError when one can't be read."""
        with _mended(self.directory):
            rows = self._connection.execute("SELECT key, value FROM records WHERE kind = ? ORDER BY key", (kind,))
        while True:
            with _mended(self.directory):
                row = rows.fetchone()
            if row is None:
                return
            yield row[0], self._unpacked(kind, row[0], row[1])

    def _unpacked(self, kind: str, key: str, value: bytes) -> Any:
        try:
            return from_json(zlib.decompress(value))
        except (zlib.error, ValueError, TypeError, RecursionError) as error:
            raise damaged(self.directory, f"{kind} {key}: {error}") from error

    def close(self) -> None:
        """Close the file; what was put stays."""
        self._connection.close()


@contextmanager
def claimed(directory: Path) -> Iterator[None]:
    """Keep a run directory for one process that adds to it, until the block ends or the process does. Raises RunDirectoryError when another has it."""
    with _mended(directory):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunDirectoryError(IN_USE.format(directory)) from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
        yield
    finally:
        os.close(descriptor)


def holds_run(directory: Path) -> bool:
    """Whether a run was started in a directory. Raises RunDirectoryError when that can't be told."""
    with _mended(directory):
        try:
            (directory / _FILE).stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True


def _emptied(directory: Path) -> None:
    """Fold the log of a run that is about to be replaced into its file: a log that is left would be taken for the new file's."""
    connection = sqlite3.connect(directory / _FILE, timeout=0, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=DELETE")
    finally:
        connection.close()


def _connected(path: Path) -> sqlite3.Connection:
    """A connection for reading and writing, or for reading only where the folder can't be written."""
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        log = path.with_name(f"{path.name}-wal")
        if not log.exists() or not log.stat().st_size:
            return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None)
        return _copied(path, log)
    connection = sqlite3.connect(path, timeout=30, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _copied(path: Path, log: Path) -> sqlite3.Connection:
    """A run in memory: SQLite reads the log that a killed audit left only where it may write an index beside it."""
    memory = sqlite3.connect(":memory:", isolation_level=None)
    with tempfile.TemporaryDirectory(prefix="truekernel-run-") as folder:
        for part in (path, log):
            shutil.copy(part, Path(folder) / part.name)
            (Path(folder) / part.name).chmod(0o600)
        with closing(sqlite3.connect(Path(folder) / path.name)) as copy:
            copy.backup(memory)
    memory.execute("PRAGMA query_only=1")
    return memory


@contextmanager
def _mended(directory: Path) -> Iterator[None]:
    """Faults of the file system and of SQLite, as one line that says what to do."""
    try:
        yield
    except PermissionError as error:
        raise RunDirectoryError(
            f"{directory} can't be read or written ({error.strerror}): choose another --run directory"
        ) from error
    except (FileExistsError, NotADirectoryError) as error:
        raise RunDirectoryError(f"{directory} is not a directory: choose another --run directory") from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError, TypeError, AttributeError) as error:
        raise damaged(directory, str(error)) from error
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "full" in text:
            raise MachineError(
                f"{directory}: the disk is full; free some space and run the same command with --resume (nothing stored is lost)"
            ) from error
        if isinstance(error, sqlite3.OperationalError) and "locked" in text:
            raise RunDirectoryError(IN_USE.format(directory)) from error
        if isinstance(error, sqlite3.OperationalError) and ("readonly" in text or "unable to open" in text):
            raise RunDirectoryError(f"{directory}: {text}; choose another --run directory") from error
        raise damaged(directory, text) from error
    except OSError as error:
        raise RunDirectoryError(f"{directory}: {error.strerror}; choose another --run directory") from error
