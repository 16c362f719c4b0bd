"""Errors that a caller can mend. Faults of foreign code are data (`Outcome`), not exceptions."""

from __future__ import annotations


class TruekernelError(Exception):
    """Base of all errors whose text tells the user, in one line, what is wrong and how to mend it.

    The command line prints the text without a traceback and exits with `exit_code`.
    """

    exit_code = 2


class BadInputError(TruekernelError):
    """An argument, a file or a name is not usable; the text names the value and the mend."""


class UnknownNameError(BadInputError):
    """A checker, rule, problem or program of that name does not exist; the text lists the nearest names."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        import difflib

        near = difflib.get_close_matches(name[:200], known, n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(sorted(known)[:12])}"
        shown = name if len(name) <= 80 else f"{name[:77]}..."
        super().__init__(f"unknown {kind} '{shown}': {hint}")


class SourceError(BadInputError):
    """A source file does not parse; the text gives file, line and column."""

    def __init__(self, path: str, line: int, column: int, why: str) -> None:
        super().__init__(f"{path}:{line}:{column}: {why}")


class PlanError(BadInputError):
    """A launch plan failed while it was recorded, or asks for a launch that no GPU accepts."""


class CompilerMissingError(TruekernelError):
    """No C++ compiler for the CPU backend was found; `truekernel doctor` lists what was tried."""


class RunDirectoryError(BadInputError):
    """A run directory can't be read or written, or was made by another version."""


class MachineError(TruekernelError):
    """The machine failed (a worker died, the disk is full); never blamed on a kernel."""

    exit_code = 3


class GpuMissingError(TruekernelError):
    """No NVIDIA GPU can be used: no driver, no device, or one that does not compute; the text says which."""

    exit_code = 3


class NvrtcMissingError(CompilerMissingError):
    """The run-time compiler for GPUs, or `cuda.core` through which it is called, is not installed."""


class GpuMemoryError(TruekernelError):
    """A case does not fit the GPU's memory; the text names the case and a size that fits."""
