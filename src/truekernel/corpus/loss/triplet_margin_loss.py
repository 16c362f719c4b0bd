"""Launch plan: a loss for each row, then their mean."""

PROBLEM = "triplet_margin_loss"
TRAITS = {"multi-kernel", "shuffle"}
BLOCK = 128


def launch(run, inputs, axes):
    rows, cols = axes["B"], axes["N"]
    losses = run.empty((rows,), "float32")
    loss = run.empty((), "float32")
    args = (inputs["anchor"], inputs["positive"], inputs["negative"], losses, 1.0, 1e-6, cols)
    run.launch("triplet_rows", rows, BLOCK, args)
    run.launch("triplet_mean", 1, 32, (losses, loss, rows))
    return loss
