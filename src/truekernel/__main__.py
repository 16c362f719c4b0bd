"""`python -m truekernel`, and what the installed command calls."""

import sys


def run() -> int:
    """The command line, from its imports on: an interrupt during those is no fault to trace."""
    try:
        from truekernel.cli import main

        return main()
    except KeyboardInterrupt:
        print("truekernel: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(run())
