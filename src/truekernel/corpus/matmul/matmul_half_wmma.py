"""Launch plan: four warps a 32 x 32 tile of the product."""

PROBLEM = "matmul_half"
TRAITS = {"half", "wmma"}

TILE = 32


def launch(run, inputs, axes):
    """One launch."""
    M, N, K = axes["M"], axes["N"], axes["K"]
    c = run.empty((M, N), "float16")
    run.launch(
        "matmul_half_wmma",
        ((N + TILE - 1) // TILE, (M + TILE - 1) // TILE),
        128,
        (inputs["a"], inputs["b"], c, M, N, K),
    )
    return c
