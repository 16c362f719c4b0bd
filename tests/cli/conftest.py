import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))


@pytest.fixture(autouse=True)
def away_from_settings(monkeypatch, tmp_path):
    """Run in an empty folder: no pyproject.toml of anybody sets options."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
