"""The command line: one file a command; each parses, calls one function and prints.

Exit codes: 0 the answer is good; 1 the answer is bad; 2 the call was wrong; 3 the machine failed. Heavy libraries are imported
inside commands only, so that `--help` answers at once.
"""

from truekernel.cli.application import main

__all__ = ["main"]
