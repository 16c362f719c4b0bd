"""Launch plan: 32 queries a block, one grid row a head; head widths are even."""

PROBLEM = "causal_attention_half"
TRAITS = {"half"}

THREADS = 32
KEYS = 16


def launch(run, inputs, axes):
    """One launch."""
    heads, length, D = axes["heads"], axes["length"], axes["D"]
    y = run.empty((heads, length, D), "float16")
    run.launch(
        f"causal_attention_threads<{D // 2}, {KEYS}, {THREADS}>",
        ((length + THREADS - 1) // THREADS, heads),
        THREADS,
        (inputs["q"], inputs["k"], inputs["v"], y, length, 1.0 / D**0.5),
    )
    return y
