"""Launch plan: one grid row an output channel, one grid layer an image."""

PROBLEM = "conv2d"
TRAITS: set[str] = set()

KERNEL = 11
STRIDE = 4
PADDING = 2
THREADS = 64


def launch(run, inputs, axes):
    """One launch; dynamic shared memory holds the filter of one output channel."""
    batch, C, filters, H, W = axes["batch"], axes["C"], axes["O"], axes["H"], axes["W"]
    out_h = (H + 2 * PADDING - KERNEL) // STRIDE + 1
    out_w = (W + 2 * PADDING - KERNEL) // STRIDE + 1
    y = run.empty((batch, filters, out_h, out_w), "float32")
    run.launch(
        f"conv2d_direct<{KERNEL}, {STRIDE}, {PADDING}>",
        ((out_h * out_w + THREADS - 1) // THREADS, filters, batch),
        THREADS,
        (inputs["x"], inputs["weight"], inputs["bias"], y, C, H, W, out_h, out_w),
        shared=C * KERNEL * KERNEL * 4,
    )
    return y
