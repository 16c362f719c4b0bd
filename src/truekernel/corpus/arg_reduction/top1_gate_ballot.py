"""Launch plan: one warp a row."""

PROBLEM = "top1_gate"
TRAITS = {"shuffle", "template", "two-outputs", "vote"}


def launch(run, inputs, axes):
    tokens, experts = axes["T"], axes["E"]
    gate = run.empty((tokens,), "float32")
    expert = run.empty((tokens,), "int64")
    run.launch("top1_gate_ballot<32>", tokens, 32, (inputs["logits"], gate, expert, experts))
    return gate, expert
