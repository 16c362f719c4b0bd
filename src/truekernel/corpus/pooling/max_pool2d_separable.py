"""Launch plan: 32 x 8 outputs a block, one grid layer a plane."""

PROBLEM = "max_pool2d"
TRAITS: set[str] = set()

KERNEL = 4
PADDING = 1
TILE_X = 32
TILE_Y = 8


def launch(run, inputs, axes):
    """One launch."""
    batch, C, H, W = axes["batch"], axes["C"], axes["H"], axes["W"]
    out_h = H + 2 * PADDING - KERNEL + 1
    out_w = W + 2 * PADDING - KERNEL + 1
    y = run.empty((batch, C, out_h, out_w), "float32")
    run.launch(
        f"max_pool2d_separable<{KERNEL}, {PADDING}, {TILE_X}, {TILE_Y}>",
        ((out_w + TILE_X - 1) // TILE_X, (out_h + TILE_Y - 1) // TILE_Y, batch * C),
        (TILE_X, TILE_Y),
        (inputs["x"], y, H, W, out_h, out_w),
    )
    return y
