"""Calls of torch's operators that are known to be valid, learned by watching.

torch ships samples of inputs for its own tests (OpInfo). They are executed, forwards and backwards, while every public function and every overload of the
dispatcher that is entered notes its arguments. What is noted is turned into data, made again, and kept where it still runs. Operators that nothing entered
borrow the samples of those with the same name elsewhere, and at last random arguments that fit the schema. A child process does each part, so that a crash
costs only its part. The result is kept in a file of the user's cache, by version.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from truekernel.errors import BadInputError, MachineError
from truekernel.fuzz.records import Call, document, parsed

FORMAT = 1
SECONDS_A_PART = 20.0


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


def samples() -> Samples:
    """Valid calls by operator name; from the cache, or learned now, which takes minutes. Raises BadInputError where torch's samples can't be imported."""
    path = _cache()
    if not path.is_file():
        _learn(path)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        table = json.load(file)
    return Samples(table)


def _cache() -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "truekernel" / "fuzz"
    here = Path(__file__).parent
    sources = b"".join(
        (here / f"torch_{part}.py").read_bytes() for part in ("samples", "calls", "operators", "harvest")
    )
    mark = hashlib.blake2b(
        f"{FORMAT} {torch.__version__} {torch.version.git_version}".encode() + sources, digest_size=6
    ).hexdigest()
    return root / f"torch-{torch.__version__}-{mark}.json.gz"


def _learn(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "truekernel.fuzz.libraries.torch_samples", str(path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or not path.is_file():
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        if "expecttest" in last[0]:
            raise BadInputError("torch's samples need the package expecttest: pip install expecttest")
        raise MachineError(f"the samples of torch could not be learned: {last[0][:200]}")


def in_child(work: Callable[[], Iterable[Call]], folder: Path, seconds: float = SECONDS_A_PART) -> list[Call]:
    """What `work` yields in a forked child, up to where it crashed or ran out of time."""
    path = folder / "part"
    child = os.fork()
    if not child:
        import signal

        signal.setitimer(
            signal.ITIMER_PROF, seconds
        )  # of the processor, not of the clock: a machine that is busy costs no samples
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            with path.open("w", encoding="utf-8") as file:
                for call in work():
                    file.write(json.dumps(document(call)) + "\n")
                    file.flush()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(parsed(json.loads(line)))
        except ValueError:
            break
    return found


def _main(path: Path) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    from truekernel.fuzz.libraries.torch_harvest import Harvest

    with tempfile.TemporaryDirectory(prefix="truekernel-samples-") as folder:
        table: Mapping[str, list[Any]] = Harvest(Path(folder)).run()
    draft = path.with_suffix(f".{os.getpid()}")
    with gzip.open(draft, "wt", encoding="utf-8", compresslevel=6) as file:
        json.dump({name: [document(call) for call in calls] for name, calls in table.items()}, file)
    draft.rename(path)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
