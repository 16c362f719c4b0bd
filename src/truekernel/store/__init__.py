"""One SQLite file a run: crash-safe, resumable, readable while it is written."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from truekernel.errors import MachineError, RunDirectoryError

FORMAT = 3
"""Format of the run directory; a run of another format is refused, never guessed at."""

_FILE = "run.sqlite"
_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS records (kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
"""


class Store:
    """Records of a run by (kind, key); values are JSON documents, stored compressed.

    Each `put_many` is one transaction, on disk before it returns, so that a killed process loses at most what it had not yet put.
    """

    def __init__(self, directory: Path, connection: sqlite3.Connection) -> None:
        self.directory = directory
        self._connection = connection

    @classmethod
    def create(cls, directory: Path, meta: Mapping[str, Any]) -> Store:
        """A new run in `directory` (made when missing). Raises RunDirectoryError when it holds a run already or can't be written."""
        if (directory / _FILE).exists():
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
            draft.rename(directory / _FILE)
        return cls.open(directory)

    @classmethod
    def open(cls, directory: Path) -> Store:
        """An existing run. Raises RunDirectoryError when there is none, or when another version made it."""
        path = directory / _FILE
        with _mended(directory):
            if not path.is_file():
                raise RunDirectoryError(
                    f"{directory} holds no run: start one with `truekernel audit --run {directory}`"
                )
            connection = sqlite3.connect(path, timeout=30, isolation_level=None)
            store = cls(directory, connection)
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
                found = store.meta().get("format")
            except sqlite3.Error:
                store.close()
                raise
        if found != FORMAT:
            store.close()
            raise RunDirectoryError(
                f"{directory} was made by another version (format {found}, this one reads {FORMAT}): start a new --run directory"
            )
        return store

    def meta(self) -> dict[str, Any]:
        """What was recorded when the run was created."""
        return {key: json.loads(value) for key, value in self._connection.execute("SELECT key, value FROM meta")}

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
        """Keys of all records of a kind."""
        return {key for (key,) in self._connection.execute("SELECT key FROM records WHERE kind = ?", (kind,))}

    def get(self, kind: str, key: str) -> Any | None:
        """One record, or None."""
        row = self._connection.execute("SELECT value FROM records WHERE kind = ? AND key = ?", (kind, key)).fetchone()
        return None if row is None else json.loads(zlib.decompress(row[0]))

    def items(self, kind: str) -> Iterator[tuple[str, Any]]:
        """All records of a kind in the order of their keys."""
        for key, value in self._connection.execute(
            "SELECT key, value FROM records WHERE kind = ? ORDER BY key", (kind,)
        ):
            yield key, json.loads(zlib.decompress(value))

    def close(self) -> None:
        """Close the file; what was put stays."""
        self._connection.close()


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
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "full" in text:
            raise MachineError(
                f"{directory}: the disk is full; free some space and run the same command with --resume (nothing stored is lost)"
            ) from error
        if isinstance(error, sqlite3.OperationalError) and "locked" in text:
            raise RunDirectoryError(
                f"{directory} is in use by another audit: wait for it, or choose another --run directory"
            ) from error
        raise RunDirectoryError(
            f"{directory}: {text}; the run can't be used, choose another --run directory"
        ) from error
    except OSError as error:
        raise RunDirectoryError(f"{directory}: {error.strerror}; choose another --run directory") from error
