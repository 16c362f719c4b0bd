"""Launch plan: four queries a block, one grid row a head."""

PROBLEM = "attention"
TRAITS: set[str] = set()

WARPS = 4
KEYS = 32


def launch(run, inputs, axes):
    """One launch; shared memory holds a tile of keys and values, the queries and their weights."""
    heads, queries, keys, D = axes["heads"], axes["queries"], axes["keys"], axes["D"]
    y = run.empty((heads, queries, D), "float32")
    floats = KEYS * (D + 1) + KEYS * D + WARPS * D + WARPS * KEYS
    run.launch(
        f"attention_flash<{WARPS}, {(D + 31) // 32}>",
        ((queries + WARPS - 1) // WARPS, heads),
        32 * WARPS,
        (inputs["q"], inputs["k"], inputs["v"], y, queries, keys, D, 1.0 / D**0.5),
        shared=4 * floats,
    )
    return y
