"""Launch plan: fill the keys, take the minimum by atomics, decode."""

PROBLEM = "min_dim"
TRAITS = {"atomics", "multi-kernel"}
BLOCK = 128
SLICE = 8192


def launch(run, inputs, axes):
    batch, rows, cols = axes["B"], axes["R"], axes["S"]
    outputs = batch * cols
    keys = run.empty((outputs,), "int32")
    y = run.empty((batch, cols), "float32")
    grid = (outputs + BLOCK - 1) // BLOCK
    run.launch("fill_keys", grid, BLOCK, (keys, outputs))
    run.launch("min_keys", ((rows * cols + SLICE - 1) // SLICE, batch), BLOCK, (inputs["x"], keys, rows, cols, SLICE))
    run.launch("decode_keys", grid, BLOCK, (keys, y, outputs))
    return y
