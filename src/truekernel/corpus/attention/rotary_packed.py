"""Launch plan: one block a token."""

PROBLEM = "rotary_embedding_bf16"
TRAITS = {"half"}

THREADS = 128


def launch(run, inputs, axes):
    """One launch."""
    tokens, heads, pairs = axes["tokens"], axes["heads"], axes["pairs"]
    y = run.empty((tokens, heads, 2 * pairs), "bfloat16")
    run.launch("rotary_packed", tokens, THREADS, (inputs["x"], inputs["cosine"], inputs["sine"], y, heads, pairs))
    return y
