"""Launch plan: a block for 16 columns of one batch entry, 16 lanes a column."""

PROBLEM = "argmin_dim"
TRAITS = {"shared", "template"}
COLS = 16
LANES = 16


def launch(run, inputs, axes):
    batch, rows, cols = axes["B"], axes["R"], axes["S"]
    index = run.empty((batch, cols), "int64")
    grid = ((cols + COLS - 1) // COLS, batch)
    run.launch(f"argmin_dim<{COLS}, {LANES}>", grid, (COLS, LANES), (inputs["x"], index, rows, cols))
    return index
