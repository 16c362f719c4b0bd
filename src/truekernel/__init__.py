"""Truekernel: how many wrong GPU kernels does a correctness checker accept, and how many right ones does it reject?

The names below are the public API; each is loaded on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truekernel.audit import replay, run_audit, summarise
    from truekernel.audit.options import AuditOptions
    from truekernel.audit.summary import Summary
    from truekernel.corpus import load_program, problems, programs
    from truekernel.errors import TruekernelError
    from truekernel.execution.simt import find_compilers
    from truekernel.mutation import mutants, mutants_of_file, rules
    from truekernel.report import write_html

_HOMES = {
    "AuditOptions": "truekernel.audit.options",
    "Summary": "truekernel.audit.summary",
    "TruekernelError": "truekernel.errors",
    "find_compilers": "truekernel.execution.simt",
    "load_program": "truekernel.corpus",
    "mutants": "truekernel.mutation",
    "mutants_of_file": "truekernel.mutation",
    "problems": "truekernel.corpus",
    "programs": "truekernel.corpus",
    "replay": "truekernel.audit",
    "rules": "truekernel.mutation",
    "run_audit": "truekernel.audit",
    "summarise": "truekernel.audit",
    "write_html": "truekernel.report",
}

__all__ = [
    "AuditOptions",
    "Summary",
    "TruekernelError",
    "find_compilers",
    "load_program",
    "mutants",
    "mutants_of_file",
    "problems",
    "programs",
    "replay",
    "rules",
    "run_audit",
    "summarise",
    "write_html",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'truekernel' has no attribute '{name}'")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
