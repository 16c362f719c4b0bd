"""Launch plan: grid-stride over all outputs."""

PROBLEM = "max_pool2d"
TRAITS: set[str] = set()

KERNEL = 4
STRIDE = 1
PADDING = 1
THREADS = 256
MOST_BLOCKS = 4096


def launch(run, inputs, axes):
    """One launch."""
    batch, C, H, W = axes["batch"], axes["C"], axes["H"], axes["W"]
    out_h = (H + 2 * PADDING - KERNEL) // STRIDE + 1
    out_w = (W + 2 * PADDING - KERNEL) // STRIDE + 1
    total = batch * C * out_h * out_w
    y = run.empty((batch, C, out_h, out_w), "float32")
    run.launch(
        "max_pool2d_direct",
        min(MOST_BLOCKS, (total + THREADS - 1) // THREADS),
        THREADS,
        (inputs["x"], y, total, H, W, out_h, out_w, KERNEL, STRIDE, PADDING),
    )
    return y
