"""Launch plan: each row in slices, two launches."""

PROBLEM = "softmax"
TRAITS = {"multi-kernel"}

THREADS = 128
SLICE = 4096


def launch(run, inputs, axes):
    """Partial sums, then the rows."""
    rows, features = axes["rows"], axes["features"]
    slices = (features + SLICE - 1) // SLICE
    partial = run.empty((rows, slices, 2), "float32")
    y = run.empty((rows, features), "float32")
    run.launch(f"softmax_partial<{THREADS}>", (slices, rows), THREADS, (inputs["x"], partial, features, SLICE))
    run.launch(f"softmax_finish<{THREADS}>", (slices, rows), THREADS, (inputs["x"], partial, y, features, SLICE))
    return y
