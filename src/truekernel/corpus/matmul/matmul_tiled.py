"""Launch plan: one block a 16 x 16 tile of the product."""

PROBLEM = "matmul"
TRAITS: set[str] = set()

TILE = 16


def launch(run, inputs, axes):
    """One launch."""
    M, N, K = axes["M"], axes["N"], axes["K"]
    c = run.empty((M, N), "float32")
    run.launch(
        f"matmul_tiled<{TILE}>",
        ((N + TILE - 1) // TILE, (M + TILE - 1) // TILE),
        (TILE, TILE),
        (inputs["a"], inputs["b"], c, M, N, K),
    )
    return c
