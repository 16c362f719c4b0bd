"""Launch plan: keys by atomics, then their decoding."""

PROBLEM = "argmax_vocab"
TRAITS = {"atomics", "multi-kernel", "shared"}
BLOCK = 128
PER_THREAD = 32


def launch(run, inputs, axes):
    rows, vocab = axes["B"], axes["V"]
    keys = run.zeros((rows,), "int64")
    token = run.empty((rows,), "int64")
    splits = (vocab + BLOCK * PER_THREAD - 1) // (BLOCK * PER_THREAD)
    run.launch("argmax_keys", (splits, rows), BLOCK, (inputs["logits"], keys, vocab))
    run.launch("key_to_index", (rows + 31) // 32, 32, (keys, token, rows))
    return token
