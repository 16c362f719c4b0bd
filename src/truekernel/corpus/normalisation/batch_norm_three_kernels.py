"""Launch plan: partial moments, their merge, and the application."""

PROBLEM = "batch_norm"
TRAITS = {"multi-kernel"}

THREADS = 128
MOST_SLICES = 32
APPLY_THREADS = 256


def launch(run, inputs, axes):
    """Three launches; 4 elements a thread or more in the first."""
    batch, channels, positions = axes["batch"], axes["channels"], axes["positions"]
    slices = min(MOST_SLICES, max(1, batch * positions // (4 * THREADS)))
    partial = run.empty((channels, slices, 3), "float32")
    statistics = run.empty((channels, 2), "float32")
    y = run.empty((batch, channels, positions), "float32")
    run.launch(
        f"batch_norm_partial<{THREADS}>",
        (slices, channels),
        THREADS,
        (inputs["x"], partial, batch, channels, positions),
    )
    run.launch("batch_norm_finalise", channels, 32, (partial, statistics, slices, 1e-5))
    tiles = min(64, (positions + APPLY_THREADS - 1) // APPLY_THREADS)
    run.launch(
        "batch_norm_apply",
        (tiles, channels, batch),
        APPLY_THREADS,
        (inputs["x"], statistics, inputs["weight"], inputs["bias"], y, channels, positions),
    )
    return y
