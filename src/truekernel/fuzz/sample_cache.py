"""Samples of a library's operators, learned once for a version, in a process of its own, and kept in the user's cache."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from truekernel.errors import BadInputError, MachineError
from truekernel.fuzz.records import Call, document, parsed


class Samples(Mapping[str, Sequence[Call]]):
    """Calls by operator name, read from their JSON when they are asked for: all of them take seconds."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._table = table

    def __getitem__(self, name: str) -> list[Call]:
        """Calls of one operator. Raises KeyError for one without."""
        return [parsed(call) for call in self._table[name]]

    def __contains__(self, name: object) -> bool:
        return name in self._table

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def cached(name: str, module: str) -> Samples:
    """The samples in the cache's file `name`; where it is missing, `python -m module FILE` must write it with `write`.

    Raises BadInputError where a package is missing for that, MachineError where it fails otherwise.
    """
    path = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "truekernel" / "fuzz" / f"{name}.json.gz"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        print(f"learning samples of {name}, once for this version: this takes some minutes", file=sys.stderr)
        environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-P", "-m", module, str(path)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not path.is_file():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            if "ModuleNotFoundError" in last:
                raise BadInputError(
                    f"samples of {name} can't be learned: {last.partition(': ')[2]} (pip install it, or truekernel[fuzz])"
                )
            raise MachineError(f"samples of {name} can't be learned: {last[:200]}")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return Samples(json.load(file))


def write(path: Path, table: Mapping[str, Sequence[Call]]) -> None:
    """Write samples for `cached`, whole or not at all."""
    draft = path.with_suffix(f".{os.getpid()}")
    with gzip.open(draft, "wt", encoding="utf-8", compresslevel=6) as file:
        json.dump({name: [document(call) for call in calls] for name, calls in table.items()}, file)
    draft.rename(path)
