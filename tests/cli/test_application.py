import subprocess
import sys

import pytest

from truekernel.cli import main
from truekernel.errors import BadInputError, MachineError


def one_line(capsys):
    """Standard error, which must be one line and no traceback."""
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and err.startswith("truekernel: ") and "Traceback" not in err
    return err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["adit"], 'Did you mean "audit"?'),
        (["audit", "--smaple", "3"], "Did you mean --sample?"),
        (["audit", "--sample", "many"], "--sample many: give a whole number"),
        (["report"], "requires an argument"),
        (["rules", "drop-epsilom"], "did you mean drop-epsilon"),
        (["mutants", "missing.cu"], "can't read missing.cu"),
        (["mutants", "x.cu", "--rule"], "requires an argument"),
    ],
)
def test_wrong_calls_end_with_one_line(argv, said, capsys):
    assert main(argv) == 2
    assert said in one_line(capsys)


def raising(monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr("truekernel.mutation.select", fail)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadInputError("what\nit is"), 2),
        (MachineError("worker died"), 3),
        (OSError(28, "No space left on device"), 3),
        (MemoryError(), 3),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_code_of_each_failure(error, code, capsys, monkeypatch):
    raising(monkeypatch, error)
    assert main(["rules"]) == code
    one_line(capsys)


def test_a_fault_of_our_own_is_not_hidden(capsys, monkeypatch):
    raising(monkeypatch, ZeroDivisionError("division by zero"))
    assert main(["rules"]) == 3
    err = capsys.readouterr().err
    assert "Traceback" in err and err.endswith("truekernel: this is a fault of truekernel, not of your call\n")


def test_output_cut_off_by_its_reader_is_no_failure():
    done = subprocess.run(
        f'{sys.executable} -c \'import sys; from truekernel.cli import main; sys.exit(main(["rules", "--json"]))\' | head -c 10; '
        "exit ${PIPESTATUS[0]}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_help_lists_every_command(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for command in ("audit", "report", "replay", "rules", "mutants", "problems", "checkers", "doctor"):
        assert f" {command} " in out
    assert "Exit codes: 0 good" in out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip()[0].isdigit()


def test_options_come_from_pyproject(tmp_path, monkeypatch, capsys):
    (tmp_path / "pyproject.toml").write_text("[tool.truekernel.rules]\njson = true\n")
    assert main(["rules", "sync"]) == 0
    assert capsys.readouterr().out.startswith("[")


@pytest.mark.parametrize("key", ["rule", "rules"])
def test_lists_have_singular_and_plural_names_in_pyproject(key, tmp_path, capsys):
    (tmp_path / "pyproject.toml").write_text(f'[tool.truekernel.mutants]\n{key} = ["drop-guard"]\n')
    (tmp_path / "k.cu").write_text("__global__ void k(float* x, int n) {\n    if (n > 3) x[0] = 1.0f;\n}\n")
    assert main(["mutants", "k.cu"]) == 0
    assert capsys.readouterr().out.endswith("1 mutants: boundary 1\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.truekernel.rules]\njsn = true\n", "[tool.truekernel.rules] 'jsn': did you mean json"),
        ("[tool.truekernel.auditt]\nsample = 3\n", "[tool.truekernel] 'auditt': did you mean audit"),
        ("[tool.truekernel]\nsample = 3\n", "unknown command in"),
        ("[tool.truekernel]\naudit = 3\n", "[tool.truekernel.audit] must be a table"),
        ("[tool]\ntruekernel = 3\n", "[tool.truekernel] must be a table"),
    ],
)
def test_settings_that_mean_nothing_are_answered(text, said, tmp_path, capsys):
    (tmp_path / "pyproject.toml").write_text(text)
    assert main(["rules", "drop-guard"]) == 2
    assert said in one_line(capsys)


def test_nothing_heavy_is_loaded_to_answer_help():
    code = (
        "import sys, truekernel; from truekernel.cli import main; main(['--help']); main(['ruls']);"
        "print(sorted({'torch', 'numpy', 'scipy', 'pydantic', 'tree_sitter', 'jinja2', 'plotly'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


def test_public_names_exist_and_load_lazily():
    import truekernel

    assert set(truekernel.__all__) <= set(dir(truekernel))
    assert callable(truekernel.mutants_of_file)
    with pytest.raises(AttributeError, match="no_such"):
        _ = truekernel.no_such


def test_module_is_the_command_line_with_its_exit_codes():
    done = subprocess.run([sys.executable, "-m", "truekernel", "ruls"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and 'Did you mean "rules"?' in done.stderr
