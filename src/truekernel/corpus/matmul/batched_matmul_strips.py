"""Launch plan: 16 x 64 outputs a block, one grid layer a matrix."""

PROBLEM = "batched_matmul"
TRAITS: set[str] = set()

TILE = 16
COLUMNS = 4


def launch(run, inputs, axes):
    """One launch."""
    batch, M, N, K = axes["batch"], axes["M"], axes["N"], axes["K"]
    width = TILE * COLUMNS
    c = run.empty((batch, M, N), "float32")
    run.launch(
        f"batched_matmul_strips<{TILE}, {COLUMNS}>",
        ((N + width - 1) // width, (M + TILE - 1) // TILE, batch),
        (TILE, TILE),
        (inputs["a"], inputs["b"], c, M, N, K),
    )
    return c
