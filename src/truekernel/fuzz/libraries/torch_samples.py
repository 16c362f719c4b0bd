"""Calls of torch's operators that are known to be valid, learned by watching.

torch ships samples of inputs for its own tests (OpInfo). They are executed, forwards and backwards, while every public function and every overload of the
dispatcher that is entered notes its arguments. What is noted is turned into data, made again, and kept where it still runs. Operators that nothing entered
borrow the samples of those with the same name elsewhere, and at last random arguments that fit the schema. A child process does each part, so that a crash
costs only its part.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import torch

from truekernel.fuzz.sample_cache import Samples, cached, write

FORMAT = 1


def samples() -> Samples:
    """Valid calls by operator name. Raises BadInputError where torch's samples can't be imported."""
    return cached(f"torch-{torch.__version__}-{FORMAT}", "truekernel.fuzz.libraries.torch_samples")


def _main(path: Path) -> None:
    from truekernel.fuzz.libraries.torch_harvest import Harvest

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="truekernel-samples-") as folder:
        write(path, Harvest(Path(folder)).run())


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
