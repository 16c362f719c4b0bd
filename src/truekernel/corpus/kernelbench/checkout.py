"""A user's own checkout of KernelBench: which problem files it has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from truekernel.errors import BadInputError

FOLDER = "KernelBench"
_LEVEL = re.compile(r"level(\d+)")
_FILE = re.compile(r"(\d+)_(\w+)\.py")


@dataclass(frozen=True, slots=True, order=True)
class ProblemFile:
    """One problem file, `KernelBench/level<level>/<number>_<title>.py` in its checkout."""

    level: int
    number: int
    title: str
    path: Path

    @property
    def id(self) -> str:
        """As bindings name it: "level1/23"."""
        return f"level{self.level}/{self.number}"

    @property
    def name(self) -> str:
        """Name of the problem that it becomes: "kernelbench/level1/23_Softmax"."""
        return f"kernelbench/level{self.level}/{self.path.stem}"


def problem_files(root: str | Path, levels: Iterable[int] = ()) -> list[ProblemFile]:
    """The problem files of a checkout in order of level and number; `levels`: only these, empty = all.

    `root`: the checkout, or its folder `KernelBench`. Raises BadInputError when it is none, or lacks a level that is asked for.
    """
    given = Path(root)
    wanted = set(levels)
    for folder in (given / FOLDER, given):
        found = {int(match[1]): path for path in _children(folder) if (match := _LEVEL.fullmatch(path.name))}
        if found:
            break
    else:
        raise BadInputError(
            f"--kernelbench {given}: not a checkout of KernelBench, it has no folder {FOLDER}/level1: give the folder that `git clone https://github.com/ScalingIntelligence/KernelBench` made"
        )
    missing = wanted - set(found)
    if missing:
        have = ", ".join(str(level) for level in sorted(found))
        raise BadInputError(f"--level {min(missing)}: {given} has levels {have}")
    files = [
        ProblemFile(level, int(match[1]), match[2], path)
        for level, folder in found.items()
        if not wanted or level in wanted
        for path in _children(folder)
        if (match := _FILE.fullmatch(path.name))
    ]
    if not files:
        raise BadInputError(f"--kernelbench {given}: its level folders hold no files such as 1_Name.py")
    return sorted(files)


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
