"""Launch plan: one thread an element."""

PROBLEM = "elu"


def launch(run, inputs, axes):
    count = axes["B"] * axes["D"]
    y = run.empty((axes["B"], axes["D"]), "float32")
    run.launch("elu_rows", (count + 255) // 256, 256, (inputs["x"], y, count), shared=1024)
    return y
