"""Where the CUDA headers are: an installed toolkit, or the wheels that bring them. Standard library only."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

OWN = Path(__file__).parent / "native" / "include"
"""Small stand-ins for headers of the host's C library, which NVRTC does not see, and the prelude."""
PRELUDE = "tk_prelude.h"
_PROOF = "cuda_fp16.h"
_WHOLE = "crt/mma.h"
"""Some wheels leave out the folder that mma.h needs."""
_VERSION = re.compile(r"^#define\s+CUDA_VERSION\s+(\d+)", re.MULTILINE)


def include_paths(version: tuple[int, int]) -> list[str]:
    """Include folders for an NVRTC of `version`, our own first; headers of the same major version are preferred, then whole ones, then of the same version.

    Without any, programs that include no CUDA header still compile.
    """
    found = list(dict.fromkeys(folder for folder in _candidates() if (folder / _PROOF).is_file()))
    wanted = version[0] * 1000 + version[1] * 10

    def fits(folder: Path) -> tuple[bool, bool, bool]:
        has = header_version(folder)
        return has // 1000 != version[0], not (folder / _WHOLE).is_file(), has != wanted

    chosen = sorted(found, key=fits)[:1]
    extra = [folder / "cccl" for folder in chosen] + [
        root / "cuda_cccl" / "include" for root in _wheel_roots(sys.path) if (root / "cuda_cccl" / "include").is_dir()
    ]
    return [str(folder) for folder in (OWN, *chosen, *(e for e in extra if e.is_dir()))]


def header_version(folder: Path) -> int:
    """CUDA_VERSION of the headers in a folder (13000 is 13.0); 0 when it doesn't say."""
    try:
        match = _VERSION.search((folder / "cuda.h").read_text(errors="replace"))
    except OSError:
        return 0
    return int(match[1]) if match else 0


def _candidates() -> Iterator[Path]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "include"
    for root in _wheel_roots(sys.path):
        yield from (root / "cu13" / "include", root / "cu12" / "include", root / "cuda_runtime" / "include")
    yield Path("/usr/local/cuda/include")
    yield from sorted(Path("/usr/local").glob("cuda-*/include"), reverse=True)
    yield Path("/usr/include")


def _wheel_roots(path: Iterable[str]) -> list[Path]:
    return [root for entry in path if entry and (root := Path(entry) / "nvidia").is_dir()]
