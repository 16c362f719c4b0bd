"""Launch plan: partial sums, then their total."""

PROBLEM = "kl_div"
TRAITS = {"multi-kernel", "shared", "vector"}
BLOCK = 128
ITEMS = 16


def launch(run, inputs, axes):
    n = axes["B"] * axes["N"]
    grid = min((n + BLOCK * ITEMS - 1) // (BLOCK * ITEMS), 512)
    partial = run.empty((grid,), "float32")
    loss = run.empty((), "float32")
    run.launch("kl_partial", grid, BLOCK, (inputs["predictions"], inputs["targets"], partial, n))
    run.launch("kl_total", 1, BLOCK, (partial, loss, grid, axes["B"]))
    return loss
