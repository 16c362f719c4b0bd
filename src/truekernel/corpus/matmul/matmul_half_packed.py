"""Launch plan: 16 x 16 outputs a block of 64 threads."""

PROBLEM = "matmul_half"
TRAITS = {"half"}

SIDE = 8
BK = 16


def launch(run, inputs, axes):
    """One launch."""
    M, N, K = axes["M"], axes["N"], axes["K"]
    tile = 2 * SIDE
    c = run.empty((M, N), "float16")
    run.launch(
        f"matmul_half_packed<{SIDE}, {BK}>",
        ((N + tile - 1) // tile, (M + tile - 1) // tile),
        (SIDE, SIDE),
        (inputs["a"], inputs["b"], c, M, N, K),
    )
    return c
