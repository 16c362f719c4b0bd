"""KernelBench-Verified's hidden tests.

Settings from facebookresearch/kernel_bench_verified and its paper (arXiv 2607.16241): four cases per problem, the official inputs times 1, 3, 0.01 and -1; integer
tensors and parameters are not scaled and shapes never change; atol = rtol = 1e-3 in float32 and 1e-2 in bfloat16 (taken for float16 too), in KernelBench's
comparison; all four must pass. An input whose domain a scale would leave (probabilities times -1) stays unscaled here: the reference is not defined there.
"""

from __future__ import annotations

from truekernel.checkers.flat import FlatChecker
from truekernel.checkers.kernelbench import SEEDS

SOURCE = "https://github.com/facebookresearch/kernel_bench_verified"
SCALES = ("official", "official*3", "official*0.01", "official*-1")

CHECKERS = (FlatChecker("kernelbench-verified", "3fdf6fe", SOURCE, 1e-3, 1e-2, SCALES, SEEDS),)
