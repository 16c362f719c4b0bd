"""Launch plan: one warp a row."""

PROBLEM = "top1_gate"
TRAITS = {"shuffle", "template", "two-outputs", "vote"}
WARP = 32


def launch(run, inputs, axes):
    tokens, experts = axes["T"], axes["E"]
    gate = run.empty((tokens,), "float32")
    expert = run.empty((tokens,), "int64")
    run.launch(f"top1_gate_ballot<{WARP}>", tokens, WARP, (inputs["logits"], gate, expert, experts))
    return gate, expert
