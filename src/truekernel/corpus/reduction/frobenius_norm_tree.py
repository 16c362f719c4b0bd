"""Launch plan: partial sums, their total, division."""

PROBLEM = "frobenius_norm"
TRAITS = {"multi-kernel", "shared"}
BLOCK = 128
CHUNK = 4096


def launch(run, inputs, axes):
    x = inputs["x"]
    n = x.elements
    chunks = (n + CHUNK - 1) // CHUNK
    partial = run.empty((chunks,), "float64")
    norm = run.empty((1,), "float64")
    y = run.empty(x.shape, "float32")
    run.launch("partial_squares", chunks, BLOCK, (x, partial, n, CHUNK), shared=8 * BLOCK)
    run.launch("total_norm", 1, BLOCK, (partial, norm, chunks), shared=8 * BLOCK)
    run.launch("divide_by", min((n + BLOCK - 1) // BLOCK, 256), BLOCK, (x, norm, y, n))
    return y
