"""Launch plan: 32 x 32 outputs a block, 4 x 4 a thread."""

PROBLEM = "matmul"
TRAITS: set[str] = set()

BM = BN = 32
BK = 16
TM = TN = 4


def launch(run, inputs, axes):
    """One launch."""
    M, N, K = axes["M"], axes["N"], axes["K"]
    c = run.empty((M, N), "float32")
    run.launch(
        f"matmul_register_blocked<{BM}, {BN}, {BK}, {TM}, {TN}>",
        ((N + BN - 1) // BN, (M + BM - 1) // BM),
        BM // TM * (BN // TN),
        (inputs["a"], inputs["b"], c, M, N, K),
    )
    return c
