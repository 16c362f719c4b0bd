"""Which way files import, and how long they may be."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "truekernel"
CAP = 450
LINTER = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True, no_logo=True))"


def lint(folder, **environment):
    return subprocess.run(
        [sys.executable, "-c", LINTER],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_files_import_from_their_own_floor_or_below():
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


def test_an_import_that_goes_up_would_be_seen(tmp_path):
    house = tmp_path / "truekernel"
    for room in (
        "",
        "cli",
        "report",
        "fuzz",
        "audit",
        "judge",
        "checkers",
        "trial",
        "export",
        "mutation",
        "cases",
        "corpus",
        "execution",
        "source",
        "numerics",
        "store",
        "model",
    ):
        (house / room).mkdir()
        (house / room / "__init__.py").write_text("")
    for file in ("pool", "memory", "errors"):
        (house / f"{file}.py").write_text("")
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    clean = lint(tmp_path, PYTHONPATH=str(tmp_path))
    assert clean.returncode == 0, clean.stdout
    (house / "model" / "__init__.py").write_text("import truekernel.cli\n")
    assert lint(tmp_path, PYTHONPATH=str(tmp_path)).returncode == 1
    (house / "model" / "__init__.py").write_text("")
    (house / "cases" / "__init__.py").write_text("import truekernel.corpus\n")
    assert lint(tmp_path, PYTHONPATH=str(tmp_path)).returncode == 1


def test_every_room_has_its_floor():
    rooms = {p.name for p in PACKAGE.iterdir() if p.is_dir() and (p / "__init__.py").exists()}
    rooms |= {p.stem for p in PACKAGE.glob("*.py") if not p.stem.startswith("__")}
    listed = (ROOT / "pyproject.toml").read_text()
    assert {room for room in rooms if f"truekernel.{room}" not in listed} == set()


def test_files_are_short():
    lengths = {
        str(p.relative_to(PACKAGE)): len(p.read_text(encoding="utf-8").splitlines()) for p in PACKAGE.rglob("*.py")
    }
    assert {name: length for name, length in lengths.items() if length > CAP} == {}
