"""Launch plan: one block a row."""

PROBLEM = "count_above"
TRAITS = {"vote"}
BLOCK = 256
THRESHOLD = 0.5


def launch(run, inputs, axes):
    rows, cols = axes["B"], axes["R"]
    counts = run.empty((rows,), "int32")
    run.launch("count_above_block", rows, BLOCK, (inputs["x"], counts, THRESHOLD, cols))
    return counts
