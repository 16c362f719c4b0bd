"""Launch plan: four warps a block, one row a warp."""

PROBLEM = "cross_entropy"
TRAITS = {"atomics", "shuffle"}
WARPS = 4


def launch(run, inputs, axes):
    rows, classes = axes["B"], axes["C"]
    loss = run.zeros((), "float32")
    args = (inputs["logits"], inputs["targets"], loss, rows, classes)
    run.launch("cross_entropy_warp", (rows + WARPS - 1) // WARPS, (32, WARPS), args)
    return loss
