"""Rules over the text of evaluation scripts: each finds what it is for, and leaves alone what is right."""

import pytest

from truekernel.errors import BadInputError
from truekernel.judge.scripts import static

CASES = {
    "loose tolerance": (
        [
            "torch.allclose(a, b, atol=1e-2)",
            "TOL = 1e-2\ntorch.allclose(a, b, rtol=TOL)",
            "torch.isclose(a, b, 0.01, 0.0)",
        ],
        ["torch.allclose(a, b, atol=1e-5, rtol=1e-5)", "torch.allclose(a, b)", "plot(atol=1.0)"],
    ),
    "equal_nan": (["torch.allclose(a, b, equal_nan=True)"], ["torch.allclose(a, b, equal_nan=False)"]),
    "shared process": (
        ["exec(text, {})", "spec.loader.exec_module(module)", "eval(expression)"],
        ["subprocess.run([sys.executable, path])", "exec('x = 1')", "model.eval()"],
    ),
    "switch written": (
        [
            "torch.backends.cuda.matmul.allow_tf32 = True",
            "torch.set_num_threads(1)",
            "os.environ['CUDA_VISIBLE_DEVICES'] = '0'",
            "torch.set_float32_matmul_precision('high')",
        ],
        ["allowed = torch.backends.cuda.matmul.allow_tf32", "self.backends = []", "torch.get_num_threads()"],
    ),
    "public seed": (
        ["torch.manual_seed(42)", "SEED = 1\nrandom.seed(SEED)"],
        ["torch.manual_seed(secrets.randbits(32))", "torch.seed()"],
    ),
    "clock without a wait": (
        ["def f():\n    d = 'cuda'\n    t = time.time()\n    run()\n    return time.time() - t"],
        [
            "def f():\n    d = 'cuda'\n    t = time.time()\n    run()\n    torch.cuda.synchronize()\n    return time.time() - t",
            "def f():\n    t = time.time()\n    run()\n    return time.time() - t",
        ],
    ),
    "events of one stream": (
        [
            "def f():\n    a.record()\n    run()\n    b.record()\n    torch.cuda.synchronize()\n    return a.elapsed_time(b)"
        ],
        [
            "def f():\n    a.record()\n    run()\n    torch.cuda.synchronize()\n    b.record()\n    return a.elapsed_time(b)"
        ],
    ),
    "swallowed error": (
        [
            "try:\n    f()\nexcept Exception:\n    pass",
            "for i in x:\n    try:\n        f()\n    except:\n        continue",
        ],
        ["try:\n    f()\nexcept ValueError:\n    pass", "try:\n    f()\nexcept Exception:\n    fail()"],
    ),
    "compared sums": (
        ["torch.allclose(a.sum(), b.sum())"],
        ["torch.allclose(a, b)", "torch.allclose(a.sum(), expected)"],
    ),
}


def found(tmp_path, text):
    path = tmp_path / "script.py"
    path.write_text(text)
    return static.read(path)


def test_every_rule_has_its_controls():
    assert {rule.name for rule in static.RULES} == set(CASES)


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, (bad, _) in CASES.items() for text in bad])
def test_found(tmp_path, rule, text):
    assert rule in {one.rule for one in found(tmp_path, text)}


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, (_, good) in CASES.items() for text in good])
def test_left_alone(tmp_path, rule, text):
    assert rule not in {one.rule for one in found(tmp_path, text)}


def test_lines_are_told(tmp_path):
    (one,) = found(tmp_path, "\n\nok = torch.allclose(\n    a, b, atol=1e-1)\n")
    assert (one.line, one.text) == (3, "atol=0.1")


@pytest.mark.parametrize("text", ["def f(:\n", "x = 1\n\0"])
def test_no_python(tmp_path, text):
    with pytest.raises(BadInputError, match="no Python"):
        found(tmp_path, text)
