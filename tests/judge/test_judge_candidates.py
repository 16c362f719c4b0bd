import pytest
from judge_files import MODEL, PLAIN_REFERENCE, REFERENCE, SOLVE, ZERO_REFERENCE, model

from truekernel import corpus
from truekernel.errors import BadInputError, TruekernelError, UnknownNameError
from truekernel.judge.candidates import load_candidate
from truekernel.judge.posing import pose


def written(folder, name, text):
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.fixture(scope="module")
def elu():
    return corpus.problems()["elu"]


def test_forms(tmp_path, elu):
    solve = load_candidate(written(tmp_path, "s.cu", SOLVE), elu)
    assert (solve.form, solve.is_cuda) == ("solve", True)
    assert "run.launch" in solve.plan and "solve(" not in solve.source
    plan = load_candidate(corpus.programs()["elu"].path, elu)
    assert plan.form == "plan" and plan.source == corpus.programs()["elu"].source
    assert sorted(plan.files) == ["elu.cu", "elu.py"]
    assert load_candidate(written(tmp_path, "m.py", model()), elu).form == "model"
    function = load_candidate(written(tmp_path, "f.py", "def go(x):\n    return x\n") + ":go", elu)
    assert (function.form, function.attribute) == ("function", "go")


def test_the_digest_follows_the_content(tmp_path, elu):
    first = load_candidate(written(tmp_path, "m.py", model()), elu).digest
    assert load_candidate(written(tmp_path, "m.py", model() + "\n"), elu).digest != first
    assert load_candidate(written(tmp_path, "m.py", model()), elu).digest == first


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("gone.py", None, "no such file"),
        ("x.txt", "", "give a .cu file"),
        ("m.py", "x = 1\n", "no class ModelNew"),
        ("m.py:go", "x = 1\n", "defines no 'go': it has x"),
        ("m.py", "class ModelNew(:\n", ":1:"),
        (
            "m.py",
            "import triton\nclass ModelNew: pass\n",
            ":1: imports triton: Triton kernels can't be judged without a GPU",
        ),
        ("m.py", "from torch.utils import cpp_extension\nclass ModelNew: pass\n", "inline CUDA can't be judged"),
        ("m.py", "a\0b", "NUL byte"),
        ("s.cu", "__global__ void k(float* x) { x[0] = 1; }\n", "solve"),
        ("s.cu", "not CUDA at all {{{", "s.cu:"),
    ],
)
def test_what_is_refused(tmp_path, elu, name, text, said):
    file = name.split(":")[0]
    if text is not None:
        written(tmp_path, file, text)
    with pytest.raises(TruekernelError) as caught:
        load_candidate(str(tmp_path / name), elu)
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_plan_without_launch(tmp_path, elu):
    written(tmp_path, "k.py", "x = 1\n")
    with pytest.raises(BadInputError, match="no function launch"):
        load_candidate(written(tmp_path, "k.cu", "__global__ void k(float* x) {}\n"), elu)


def test_problems_of_ours():
    posed = pose("softmax")
    assert posed.problem is corpus.problems()["softmax"] and not posed.text
    with pytest.raises(UnknownNameError, match="softmax"):
        pose("softmx")


def test_a_file_as_kernelbench_has_them(tmp_path):
    posed = pose(written(tmp_path, "ref.py", REFERENCE))
    assert [spec.name for spec in posed.problem.parameters] == ["linear.weight", "linear.bias"]
    assert posed.model_arguments(posed.problem.audit_axes()) == [48, 24]
    assert "reference" not in repr(posed.shapes())


def test_a_plain_reference(tmp_path):
    posed = pose(written(tmp_path, "plain.py", PLAIN_REFERENCE))
    assert [spec.name for spec in posed.problem.inputs] == ["x", "y"]
    assert posed.model_arguments(posed.problem.audit_axes()) == []
    assert posed.stem == "plain"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "no class Model, nor functions reference"),
        ("def reference(*x): return x\ndef get_inputs(): return []\n", "plain arguments"),
        ("def reference(:\n", ":1:"),
        (PLAIN_REFERENCE.replace("torch.exp(-x * x) + y", "undefined_name"), "undefined_name"),
    ],
)
def test_files_that_are_no_problem(tmp_path, text, said):
    with pytest.raises(BadInputError) as caught:
        pose(written(tmp_path, "p.py", text))
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_texts_used_here_parse():
    for text in (REFERENCE, PLAIN_REFERENCE, ZERO_REFERENCE, MODEL.format(result="x")):
        compile(text, "x", "exec")
