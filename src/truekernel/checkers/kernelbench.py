"""KernelBench's correctness check, in both tolerance eras.

Settings from ScalingIntelligence/KernelBench, src/kernelbench/eval.py (`run_and_check_correctness`, `get_tolerance_for_precision`): five trials (the count of
its command-line scripts) with fixed public seeds; each draws fresh inputs from the problem's own `get_inputs` (torch.rand throughout levels 1-3), runs the reference
first, compares the shape and then torch.allclose(reference, candidate, atol=t, rtol=t), so that t is relative to the candidate's value and NaN is never
right. Weights come from the same seed on both sides, i.e. they are the official ones. All trials must pass.
- `kernelbench@1e-2`: v0 and v0.1, t = 1e-2 in every precision.
- `kernelbench@1e-4`: main at commit 423217d (2026-03-05), t = 1e-4 in float32, 1e-2 in float16 and bfloat16.
Here the inputs come from our own generator at audit lengths; its seeds are as fixed and public as KernelBench's.
"""

from __future__ import annotations

from truekernel.checkers.flat import OFFICIAL_TRIALS, FlatChecker

REPOSITORY = "https://github.com/ScalingIntelligence/KernelBench"
SOURCE = f"{REPOSITORY}/blob/423217d/src/kernelbench/eval.py"
SEEDS = "official"
"""All checkers that use the official inputs share these seeds, and with them the executions."""

CHECKERS = (
    FlatChecker("kernelbench@1e-2", "v0.1", REPOSITORY, 1e-2, 1e-2, ("official",) * OFFICIAL_TRIALS, SEEDS),
    FlatChecker("kernelbench@1e-4", "423217d", SOURCE, 1e-4, 1e-2, ("official",) * OFFICIAL_TRIALS, SEEDS),
)
