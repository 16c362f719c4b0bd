"""Launch plan: up to 256 blocks of positions, one grid row an output channel, one grid layer an example."""

PROBLEM = "conv_transpose1d"
TRAITS: set[str] = set()

KERNEL = 3
STRIDE = 2
PADDING = 1
DILATION = 2
THREADS = 64
MOST_TILES = 256


def launch(run, inputs, axes):
    """One launch; dynamic shared memory holds the filter of one output channel."""
    batch, C, filters, L = axes["batch"], axes["C"], axes["O"], axes["L"]
    out_l = (L - 1) * STRIDE - 2 * PADDING + DILATION * (KERNEL - 1) + 1
    y = run.empty((batch, filters, out_l), "float32")
    run.launch(
        f"conv_transpose1d_gather<{KERNEL}, {STRIDE}, {PADDING}, {DILATION}>",
        (min(MOST_TILES, (out_l + THREADS - 1) // THREADS), filters, batch),
        THREADS,
        (inputs["x"], inputs["weight"], y, C, L, filters, out_l),
        shared=C * KERNEL * 4,
    )
    return y
