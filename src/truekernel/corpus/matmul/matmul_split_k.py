"""Launch plan: the inner axis in up to 64 parts, then their sum."""

PROBLEM = "matmul_large_k"
TRAITS = {"multi-kernel"}

TILE = 16
BK = 32
MOST_SPLITS = 64
REDUCE_THREADS = 128


def launch(run, inputs, axes):
    """Two launches; parts are whole numbers of inner tiles."""
    M, N, K = axes["M"], axes["N"], axes["K"]
    tiles = (K + BK - 1) // BK
    tiles_each = max(8, (tiles + MOST_SPLITS - 1) // MOST_SPLITS)
    splits = (tiles + tiles_each - 1) // tiles_each
    workspace = run.empty((splits, M, N), "float32")
    c = run.empty((M, N), "float32")
    run.launch(
        f"matmul_split_partial<{TILE}, {BK}>",
        ((N + TILE - 1) // TILE, (M + TILE - 1) // TILE, splits),
        (TILE // 2, TILE // 2),
        (inputs["a"], inputs["b"], workspace, M, N, K, tiles_each * BK),
    )
    run.launch(
        "matmul_split_reduce",
        (M * N + REDUCE_THREADS - 1) // REDUCE_THREADS,
        REDUCE_THREADS,
        (workspace, c, M * N, splits),
    )
    return c
