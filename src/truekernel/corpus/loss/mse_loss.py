"""Launch plan: partial sums, then their mean."""

PROBLEM = "mse_loss"
TRAITS = {"multi-kernel", "shuffle", "template", "vector"}
BLOCK = 128
MAX_GRID = 256


def launch(run, inputs, axes):
    n = axes["B"] * axes["N"]
    grid = min((n + 16 * BLOCK - 1) // (16 * BLOCK), MAX_GRID)
    partial = run.empty((grid,), "float32")
    loss = run.empty((), "float32")
    run.launch(f"squared_differences<{BLOCK}>", grid, BLOCK, (inputs["predictions"], inputs["targets"], partial, n))
    run.launch(f"mean_of_partials<{BLOCK}>", 1, BLOCK, (partial, loss, grid, n))
    return loss
