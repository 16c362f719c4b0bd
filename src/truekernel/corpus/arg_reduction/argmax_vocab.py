"""Launch plan: one block a row."""

PROBLEM = "argmax_vocab"
TRAITS = {"shuffle", "vector"}


def launch(run, inputs, axes):
    rows, vocab = axes["B"], axes["V"]
    token = run.empty((rows,), "int64")
    run.launch("argmax_rows", rows, 256, (inputs["logits"], token, vocab))
    return token
