"""Launch plan: 32 x 4 outputs a block, one grid layer a plane."""

PROBLEM = "avg_pool2d"
TRAITS: set[str] = set()

KERNEL = 3
STRIDE = 2
PADDING = 1
BLOCK_X = 32
BLOCK_Y = 4


def launch(run, inputs, axes):
    """One launch."""
    batch, C, H, W = axes["batch"], axes["C"], axes["H"], axes["W"]
    out_h = (H + 2 * PADDING - KERNEL) // STRIDE + 1
    out_w = (W + 2 * PADDING - KERNEL) // STRIDE + 1
    y = run.empty((batch, C, out_h, out_w), "float32")
    run.launch(
        "avg_pool2d_windows",
        ((out_w + BLOCK_X - 1) // BLOCK_X, (out_h + BLOCK_Y - 1) // BLOCK_Y, batch * C),
        (BLOCK_X, BLOCK_Y),
        (inputs["x"], y, H, W, out_h, out_w, KERNEL, STRIDE, PADDING),
    )
    return y
