"""Launch plan: one block a row."""

PROBLEM = "row_variance"
TRAITS = {"shuffle", "template", "vector"}
BLOCK = 256


def launch(run, inputs, axes):
    rows, cols = axes["B"], axes["R"]
    y = run.empty((rows,), "float32")
    run.launch(f"row_variance<{BLOCK}>", rows, BLOCK, (inputs["x"], y, cols))
    return y
