"""Launch plan: four warps a block, one row a warp."""

PROBLEM = "count_above"
TRAITS = {"vote"}
WARPS = 4
THRESHOLD = 0.5


def launch(run, inputs, axes):
    rows, cols = axes["B"], axes["R"]
    counts = run.empty((rows,), "int32")
    grid = (rows + WARPS - 1) // WARPS
    run.launch("count_above_ballot", grid, 32 * WARPS, (inputs["x"], counts, THRESHOLD, rows, cols))
    return counts
