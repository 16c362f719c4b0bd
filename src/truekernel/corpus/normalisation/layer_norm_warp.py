"""Launch plan: one warp a row, four rows a block."""

PROBLEM = "layer_norm"
TRAITS: set[str] = set()

ROWS_PER_BLOCK = 4


def launch(run, inputs, axes):
    """One launch."""
    rows, features = axes["rows"], axes["features"]
    y = run.empty((rows, features), "float32")
    run.launch(
        f"layer_norm_warp<{ROWS_PER_BLOCK}>",
        (rows + ROWS_PER_BLOCK - 1) // ROWS_PER_BLOCK,
        (32, ROWS_PER_BLOCK),
        (inputs["x"], inputs["weight"], inputs["bias"], y, rows, features, 1e-5),
    )
    return y
