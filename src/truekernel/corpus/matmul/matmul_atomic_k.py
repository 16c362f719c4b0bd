"""Launch plan: 4 rows and 128 inner elements a block; the product starts at zero."""

PROBLEM = "matmul_large_k"
TRAITS = {"atomics"}

ROWS = 4
SLICE = 128
THREADS = 64


def launch(run, inputs, axes):
    """One launch."""
    M, N, K = axes["M"], axes["N"], axes["K"]
    c = run.zeros((M, N), "float32")
    run.launch(
        f"matmul_atomic_k<{ROWS}, {SLICE}>",
        ((N + THREADS - 1) // THREADS, (M + ROWS - 1) // ROWS, (K + SLICE - 1) // SLICE),
        THREADS,
        (inputs["a"], inputs["b"], c, M, N, K),
    )
    return c
