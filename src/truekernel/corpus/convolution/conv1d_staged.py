"""Launch plan: 32 positions by 4 output channels a block, one grid layer an example."""

PROBLEM = "conv1d_dilated"
TRAITS: set[str] = set()

KERNEL = 3
STRIDE = 3
DILATION = 4
TILE_L = 32
TILE_O = 4
CHUNK = 16


def launch(run, inputs, axes):
    """One launch."""
    batch, C, filters, L = axes["batch"], axes["C"], axes["O"], axes["L"]
    out_l = (L - DILATION * (KERNEL - 1) - 1) // STRIDE + 1
    y = run.empty((batch, filters, out_l), "float32")
    run.launch(
        f"conv1d_staged<{KERNEL}, {STRIDE}, {DILATION}, {TILE_L}, {TILE_O}, {CHUNK}>",
        ((out_l + TILE_L - 1) // TILE_L, (filters + TILE_O - 1) // TILE_O, batch),
        (TILE_L, TILE_O),
        (inputs["x"], inputs["weight"], y, C, L, filters, out_l),
    )
    return y
