"""Launch plan: 16 output channels by 32 pixels a block."""

PROBLEM = "conv2d"
TRAITS: set[str] = set()

KERNEL = 11
STRIDE = 4
PADDING = 2
TILE_O = 16
TILE_P = 32
BK = 16


def launch(run, inputs, axes):
    """One launch."""
    batch, C, filters, H, W = axes["batch"], axes["C"], axes["O"], axes["H"], axes["W"]
    out_h = (H + 2 * PADDING - KERNEL) // STRIDE + 1
    out_w = (W + 2 * PADDING - KERNEL) // STRIDE + 1
    pixels = batch * out_h * out_w
    y = run.empty((batch, filters, out_h, out_w), "float32")
    run.launch(
        f"conv2d_implicit_gemm<{KERNEL}, {STRIDE}, {PADDING}, {TILE_O}, {TILE_P}, {BK}>",
        ((pixels + TILE_P - 1) // TILE_P, (filters + TILE_O - 1) // TILE_O),
        TILE_O * TILE_P // 4,
        (inputs["x"], inputs["weight"], inputs["bias"], y, batch, C, H, W, filters, out_h, out_w),
    )
    return y
