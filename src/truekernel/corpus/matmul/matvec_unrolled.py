"""Launch plan: one block of eight warps a row."""

PROBLEM = "matvec"
TRAITS: set[str] = set()

THREADS = 256


def launch(run, inputs, axes):
    """One launch."""
    M, K = axes["M"], axes["K"]
    y = run.empty((M,), "float32")
    run.launch(f"matvec_unrolled<{THREADS}>", M, THREADS, (inputs["a"], inputs["x"], y, K))
    return y
