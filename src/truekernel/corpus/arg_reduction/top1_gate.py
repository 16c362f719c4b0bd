"""Launch plan: four warps a block, one row a warp and step."""

PROBLEM = "top1_gate"
TRAITS = {"shuffle", "two-outputs"}
WARPS = 4


def launch(run, inputs, axes):
    tokens, experts = axes["T"], axes["E"]
    gate = run.empty((tokens,), "float32")
    expert = run.empty((tokens,), "int64")
    grid = min((tokens + WARPS - 1) // WARPS, 1024)
    run.launch("top1_gate", grid, 32 * WARPS, (inputs["logits"], gate, expert, tokens, experts))
    return gate, expert
