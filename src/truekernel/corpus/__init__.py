"""Problems and programs by family, and loaders for other people's programs.

A family is a folder: `problems.py` defines `PROBLEMS`, a tuple of `Problem`; each program is `<name>.cu`, device code, next to
`<name>.py`, its launch plan. Adding a program touches nothing else, a problem only its family's `PROBLEMS`, a family also `FAMILIES` in `model/problem.py`.
"""

from truekernel.corpus.loader import load_program, problems, programs

__all__ = ["load_program", "problems", "programs"]
