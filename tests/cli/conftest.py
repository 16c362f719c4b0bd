import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))


@pytest.fixture(autouse=True)
def away_from_settings(monkeypatch, tmp_path):
    """Run in an empty folder: no pyproject.toml of anybody sets options."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)


@pytest.fixture
def no_compilers(monkeypatch, tmp_path):
    """A search path that is an empty folder, given to the test, and no compiler named; what was found is forgotten before and after."""
    from truekernel.execution.simt import toolchain

    def forget():
        for value in vars(toolchain).values():
            getattr(value, "cache_clear", lambda: None)()

    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("TRUEKERNEL_CXX", raising=False)
    monkeypatch.setattr(toolchain, "_zig", lambda: None)
    forget()
    yield folder
    forget()
