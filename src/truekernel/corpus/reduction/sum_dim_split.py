"""Launch plan: rows split into slices of 128, one atomic addition a column and slice."""

PROBLEM = "sum_dim"
TRAITS = {"atomics"}
BLOCK = 64
SLICE = 128


def launch(run, inputs, axes):
    batch, rows, cols = axes["B"], axes["R"], axes["S"]
    y = run.zeros((batch, 1, cols), "float32")
    grid = ((cols + BLOCK - 1) // BLOCK, (rows + SLICE - 1) // SLICE, batch)
    run.launch("sum_dim_split", grid, BLOCK, (inputs["x"], y, rows, cols, SLICE))
    return y
