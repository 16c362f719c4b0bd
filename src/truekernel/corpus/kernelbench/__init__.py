"""KernelBench's problems, from a user's own checkout: nothing of it is part of this package.

A problem file is run in a process of its own, with tensors that have shapes and no data, to learn what it holds (`probing`, `observing`); its description
becomes a `Problem` (`adapting`) whose reference is the file's own model (`reference`). Programs of the corpus are bound to it by level and number (`binding`).
"""

from truekernel.corpus.kernelbench.adapting import Adapted
from truekernel.corpus.kernelbench.loading import Loaded, Refused, load

__all__ = ["Adapted", "Loaded", "Refused", "load"]
