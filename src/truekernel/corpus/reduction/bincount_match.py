"""Launch plan: grid-stride, one atomic addition for each label that a warp holds."""

PROBLEM = "bincount"
TRAITS = {"atomics", "vote"}
BLOCK = 128
ITEMS = 4


def launch(run, inputs, axes):
    n = axes["N"]
    counts = run.zeros((axes["K"],), "int32")
    grid = min((n + BLOCK * ITEMS - 1) // (BLOCK * ITEMS), 2048)
    run.launch("bincount_match", grid, BLOCK, (inputs["labels"], counts, n))
    return counts
