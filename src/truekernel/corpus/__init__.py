"""Problems and programs by family, and loaders for other people's programs.

A family is a folder: `problems.py` defines `PROBLEMS`, a tuple of `Problem`; each program is `<name>.cu`, device code, next to
`<name>.py`, its launch plan. Adding one touches nothing else.
"""

from truekernel.corpus.loader import load_program, problems, programs

__all__ = ["load_program", "problems", "programs"]
