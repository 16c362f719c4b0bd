"""The reference pages say what the package says."""

import runpy
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
PAGES = runpy.run_path(str(REFERENCE / "build.py"))["PAGES"]


@pytest.mark.parametrize("name", PAGES)
def test_page_is_that_of_this_package(name):
    assert (REFERENCE / name).read_text(encoding="utf-8") == PAGES[name](), "run `make docs`"


def test_links_between_pages_lead_somewhere():
    import re

    root = REFERENCE.parents[1]
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    missing = [
        f"{page.relative_to(root)}: {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
        if not link.startswith("https://") and not (page.parent / link).exists()
    ]
    assert missing == []
