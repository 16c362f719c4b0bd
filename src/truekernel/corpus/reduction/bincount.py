"""Launch plan: blocks with counts of their own in dynamic shared memory."""

PROBLEM = "bincount"
TRAITS = {"atomics", "shared"}
BLOCK = 128
ITEMS = 16
INT = 4


def launch(run, inputs, axes):
    n, bins = axes["N"], axes["K"]
    counts = run.zeros((bins,), "int32")
    grid = min((n + BLOCK * ITEMS - 1) // (BLOCK * ITEMS), 512)
    run.launch("bincount_shared", grid, BLOCK, (inputs["labels"], counts, n, bins), shared=bins * INT)
    return counts
