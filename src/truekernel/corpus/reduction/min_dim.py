"""Launch plan: a block for 16 columns of one batch entry, eight lanes a column."""

PROBLEM = "min_dim"
TRAITS = {"shuffle", "template"}
COLS = 16
LANES = 8


def launch(run, inputs, axes):
    batch, rows, cols = axes["B"], axes["R"], axes["S"]
    y = run.empty((batch, cols), "float32")
    grid = ((cols + COLS - 1) // COLS, batch)
    run.launch(f"min_dim<{COLS}, {LANES}>", grid, COLS * LANES, (inputs["x"], y, rows, cols))
    return y
