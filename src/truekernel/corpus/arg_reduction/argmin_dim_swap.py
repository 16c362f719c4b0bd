"""Launch plan: fill the slots, find the least of each slice, unpack."""

PROBLEM = "argmin_dim"
TRAITS = {"atomics", "multi-kernel"}
BLOCK = 32
SLICE = 64


def launch(run, inputs, axes):
    batch, rows, cols = axes["B"], axes["R"], axes["S"]
    outputs = batch * cols
    slots = run.empty((outputs,), "int64")
    index = run.empty((batch, cols), "int64")
    whole = (outputs + BLOCK - 1) // BLOCK
    slices = ((cols + BLOCK - 1) // BLOCK, (rows + SLICE - 1) // SLICE, batch)
    run.launch("fill_slots", whole, BLOCK, (slots, outputs))
    run.launch("argmin_slices", slices, BLOCK, (inputs["x"], slots, rows, cols, SLICE))
    run.launch("unpack_rows", whole, BLOCK, (slots, index, outputs))
    return index
