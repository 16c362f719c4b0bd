"""Launch plan: one warp a query, four a block."""

PROBLEM = "causal_softmax"
TRAITS: set[str] = set()

WARPS = 4


def launch(run, inputs, axes):
    """One launch."""
    heads, length = axes["heads"], axes["length"]
    rows = heads * length
    weights = run.empty((heads, length, length), "float32")
    run.launch(
        f"causal_softmax_warp<{WARPS}>",
        (rows + WARPS - 1) // WARPS,
        32 * WARPS,
        (inputs["scores"], weights, rows, length, 0.125),
    )
    return weights
