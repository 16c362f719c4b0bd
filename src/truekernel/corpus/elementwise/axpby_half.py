"""Launch plan: grid-stride over packs of eight halves."""

PROBLEM = "axpby_half"
TRAITS = {"half", "vector"}
BLOCK = 128
PACK = 8
ALPHA = 1.5
BETA = -0.5


def launch(run, inputs, axes):
    n = axes["N"]
    z = run.empty((n,), "float16")
    grid = min((n + BLOCK * PACK - 1) // (BLOCK * PACK), 1024)
    if n > 0:
        run.launch("axpby_half", grid, BLOCK, (inputs["x"], inputs["y"], z, ALPHA, BETA, n))
    return z
