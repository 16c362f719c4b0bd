import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest
from synthetic_summary import make_summary

from truekernel.audit.scores import KillMatrix, Rate, Vacuity
from truekernel.errors import BadInputError
from truekernel.report import html, write_html


class Page(HTMLParser):
    """Tags must nest; collects ids, links and visible text."""

    VOID = frozenset({"meta", "link", "input", "br", "img"})

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.words = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if "id" in values:
            self.ids.append(values["id"])
        self.links += [values[key] for key in ("href", "src", "action") if key in values]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        while self.open and self.open[-1] != tag and self.open[-1] in ("li", "p", "dt", "dd"):
            self.open.pop()
        assert self.open and self.open.pop() == tag, (tag, self.open, self.getpos())

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


@pytest.fixture(scope="module")
def summary():
    return make_summary(per_rule=2)


@pytest.fixture(scope="module")
def text(summary):
    return html(summary)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_same_summary_gives_the_same_bytes(summary, text):
    assert html(type(summary).model_validate_json(summary.model_dump_json())) == text


def test_page_needs_no_network(text, page):
    outside = [link for link in page.links if not link.startswith(("#", "data:"))]
    assert all(link.startswith("https://github.com/") for link in outside)
    assert "<script src" not in text and "@import" not in text and "url(" not in text


def test_links_inside_the_page_lead_somewhere(page):
    targets = {link[1:] for link in page.links if link.startswith("#")}
    assert targets and targets <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_headline_and_caveat(page, summary):
    assert "kernelbench@1e-2 (scaled) accepts" in page.text
    assert summary.scaled_note in page.text


def test_published_checkers_are_called_scaled_in_each_score(summary, page):
    for section in ("wrong kernels accepted", "Kill matrix", "How the miss rate settles"):
        after = page.text[page.text.index(section) :]
        assert re.match(r".{0,3000}?kernelbench-verified (\(scaled\))", after), section


def test_each_survivor_has_diff_witness_and_replay(summary, page, text):
    assert summary.survivors
    for survivor in summary.survivors:
        assert survivor.id in page.ids
        assert f"truekernel replay {survivor.id} --run runs/demo" in page.text
        assert f"{survivor.witness.recipe}, seed {survivor.witness.seed}" in page.text
    assert text.count('<pre class="diff"') == len(summary.survivors) + len(summary.quarantined)


def test_every_quarantined_mutant_has_its_kind(summary, text):
    for kind in ("identical", "masked", "unobserved"):
        assert text.count(f'data-kind="{kind}"') == sum(m.kind == kind for m in summary.quarantined) > 0


def test_hazards_have_a_place(summary, page):
    hazard = summary.hazards[0]
    assert (
        f"thread ({hazard.thread[0]}, 0, 0), line {hazard.line}, {hazard.buffer} at byte {hazard.offset}" in page.text
    )


def test_text_from_outside_is_escaped(summary):
    evil = summary.survivors[0].model_copy(
        update={"diff": "+ <script>alert(1)</script>", "program": '"><img src=x onerror=alert(2)>'}
    )
    text = html(summary.model_copy(update={"survivors": (evil,)}))
    assert "<script>alert" not in text and "<img" not in text
    assert "&lt;script&gt;alert(1)" in text
    Page(text)


def test_broken_checker_is_shown_and_not_scored(summary):
    page = Page(html(make_summary(per_rule=1, broken=True)))
    assert "broken raised ZeroDivisionError: division by zero" in page.text


def test_empty_run_makes_a_page(summary):
    nothing = Rate.over({})
    scores = tuple(
        score.model_copy(
            update={
                "miss": nothing, "false_rejection": nothing, "false_rejection_independent": nothing, "miss_with_quarantined": nothing,
                "miss_without_vacuous": nothing, "false_rejection_without_vacuous": nothing, "miss_by_class": (), "miss_by_rule": (),
                "miss_by_family": (), "miss_by_problem": (), "settling": (), "seed_blind": None,
            }
        )
        for score in summary.checkers
    )  # fmt: skip
    bare = summary.model_copy(
        update={
            "checkers": scores, "survivors": (), "quarantined": (), "hazards": (), "curves": (), "gain": None, "vacuity": Vacuity(),
            "kill_matrix": KillMatrix(), "complete": False,
        }
    )  # fmt: skip
    page = Page(html(bare))
    assert "no wrong kernel was proven" in page.text
    assert "This run is not finished." in page.text
    assert "No trivial output passes anywhere." in page.text


def test_write_is_whole_or_nothing(summary, text, tmp_path):
    path = tmp_path / "new" / "report.html"
    write_html(summary, path)
    assert path.read_text(encoding="utf-8") == text
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(BadInputError, match="choose another --html path"):
        write_html(summary, blocked / "report.html")


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no browser")
def test_page_works_in_a_browser(summary, tmp_path):
    write_html(summary, tmp_path / "report.html")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    done = subprocess.run(
        [
            "chromium",
            *flags,
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            (tmp_path / "report.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert f"{len(summary.survivors)} shown" in done.stdout
    assert 'data-panel="matrix:rule" hidden=""' in done.stdout
