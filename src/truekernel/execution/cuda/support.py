"""Machine code of the worker's own kernels (`native/support.cu`)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from truekernel.errors import MachineError
from truekernel.execution.cuda.compile import compile_single
from truekernel.execution.cuda.library import Library
from truekernel.execution.cuda.options import Options

SOURCE = Path(__file__).parent / "native" / "support.cu"
KERNELS = ("tk_fill", "tk_check", "tk_hash", "tk_probe")


@lru_cache(maxsize=8)
def support_code(arch: str) -> bytes:
    """The cubin for an architecture. Raises NvrtcMissingError, or MachineError when the compiler refuses it."""
    library = compile_single(SOURCE.read_text(), KERNELS, Options(arch=arch))
    if not isinstance(library, Library):
        raise MachineError(f"the worker's own kernels do not compile for {arch}: {library}")
    return library.cubin
