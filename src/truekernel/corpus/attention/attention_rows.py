"""Launch plan: one block of two warps a query, one grid row a head."""

PROBLEM = "attention"
TRAITS: set[str] = set()

THREADS = 64


def launch(run, inputs, axes):
    """One launch; shared memory holds the query and its weights."""
    heads, queries, keys, D = axes["heads"], axes["queries"], axes["keys"], axes["D"]
    y = run.empty((heads, queries, D), "float32")
    run.launch(
        f"attention_rows<{THREADS}>",
        (queries, heads),
        THREADS,
        (inputs["q"], inputs["k"], inputs["v"], y, keys, D, 1.0 / D**0.5),
        shared=4 * (D + keys),
    )
    return y
