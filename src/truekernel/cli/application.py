"""The commands together, and what their failures become: one line and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import version

from cyclopts import App, CycloptsError

from truekernel.cli.audit import audit
from truekernel.cli.audit_script import audit_script
from truekernel.cli.bench import bench
from truekernel.cli.check import check
from truekernel.cli.checkers import checkers
from truekernel.cli.compare import compare
from truekernel.cli.doctor import doctor
from truekernel.cli.export import export
from truekernel.cli.fuzz import fuzz
from truekernel.cli.gauntlet import gauntlet
from truekernel.cli.mutants import mutants
from truekernel.cli.output import open_streams
from truekernel.cli.problems import problems
from truekernel.cli.replay import replay
from truekernel.cli.report import report
from truekernel.cli.rules import rules
from truekernel.cli.settings import Settings
from truekernel.errors import TruekernelError

BAD, WRONG_CALL, MACHINE_FAILED, INTERRUPTED = 1, 2, 3, 130

COMMANDS: tuple[Callable[..., int], ...] = (
    audit,
    report,
    check,
    bench,
    compare,
    replay,
    gauntlet,
    audit_script,
    export,
    fuzz,
    rules,
    mutants,
    problems,
    checkers,
    doctor,
)
_HELP = """How many wrong CUDA kernels does a checker accept, of which kind, and how many right ones does it reject?

Start with `truekernel doctor`, then `truekernel audit --checker kernelbench --sample 200`.
"""
_EPILOGUE = "Exit codes: 0 good, 1 bad (a threshold missed), 2 wrong call, 3 machine failed."


def application() -> App:
    """The command tree. Options come from defaults, then `[tool.truekernel.COMMAND]` in pyproject.toml, then the command line."""
    app = App(
        name="truekernel",
        help=_HELP,
        help_epilogue=_EPILOGUE,
        help_format="plaintext",
        version=lambda: version("truekernel"),
        config=Settings(tuple(command.__name__.replace("_", "-") for command in COMMANDS)),
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for number, command in enumerate(COMMANDS):
        app.command(command, sort_key=number)
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. `argv`: without the program's name; None = that of the process."""
    open_streams()
    try:
        result = application()(list(sys.argv[1:] if argv is None else argv), exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except CycloptsError as error:
        return _said(f"{error} (truekernel --help lists commands and options)", WRONG_CALL)
    except TruekernelError as error:
        return _said(str(error), error.exit_code)
    except BrokenPipeError:
        # Whoever read our output has seen enough; nothing more can be said there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _said("stopped; what is stored stays: the same command with --resume goes on", INTERRUPTED)
    except OSError as error:
        return _said(f"the machine failed: {error}", MACHINE_FAILED)
    except MemoryError:
        return _said("the machine failed: out of memory; try fewer --workers", MACHINE_FAILED)
    except Exception:
        traceback.print_exc()
        return _said("this is a fault of truekernel, not of your call", MACHINE_FAILED)
    return result if isinstance(result, int) else 0


def _said(text: str, code: int) -> int:
    print(f"truekernel: {' '.join(text.split())}", file=sys.stderr)
    return code
