"""Launch plan: statistics by slices with a ticket for each group, then the application."""

PROBLEM = "group_norm"
TRAITS = {"atomics", "multi-kernel"}

THREADS = 64
MOST_SLICES = 16
APPLY_THREADS = 256
MOST_BLOCKS = 1024


def launch(run, inputs, axes):
    """Two launches; 2 elements a thread or more in the first."""
    batch, groups, width, positions = axes["batch"], axes["groups"], axes["width"], axes["positions"]
    elements = width * positions
    total = batch * groups * elements
    slices = min(MOST_SLICES, max(1, elements // (2 * THREADS)))
    partial = run.empty((batch * groups, slices, 2), "float32")
    tickets = run.zeros((batch * groups,), "int32")
    statistics = run.empty((batch * groups, 2), "float32")
    y = run.empty((batch, groups * width, positions), "float32")
    run.launch(
        f"group_norm_statistics<{THREADS}>",
        (slices, batch * groups),
        THREADS,
        (inputs["x"], partial, tickets, statistics, elements, 1e-5),
    )
    run.launch(
        "group_norm_apply",
        min(MOST_BLOCKS, (total + APPLY_THREADS - 1) // APPLY_THREADS),
        APPLY_THREADS,
        (inputs["x"], statistics, inputs["weight"], inputs["bias"], y, groups * width, width, positions, total),
    )
    return y
