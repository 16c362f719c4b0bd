"""Launch plan: one warp a row."""

PROBLEM = "masked_cumsum"
TRAITS = {"shuffle"}


def launch(run, inputs, axes):
    rows, n = axes["B"], axes["N"]
    y = run.empty((rows, n), "float32")
    run.launch("masked_cumsum_warp", rows, 32, (inputs["x"], inputs["mask"], y, n))
    return y
