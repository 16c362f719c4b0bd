"""Launch plan: 32 positions by 8 channel rows a block, one grid row an image."""

PROBLEM = "channel_rms_norm"
TRAITS: set[str] = set()

TILE_X = 32
ROWS = 8


def launch(run, inputs, axes):
    """One launch."""
    batch, channels, positions = axes["batch"], axes["channels"], axes["positions"]
    y = run.empty((batch, channels, positions), "float32")
    run.launch(
        f"rms_norm_channels<{TILE_X}, {ROWS}>",
        ((positions + TILE_X - 1) // TILE_X, batch),
        (TILE_X, ROWS),
        (inputs["x"], y, channels, positions, 1e-5),
    )
    return y
