import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from synthetic_summary import make_summary

from truekernel.audit.scores import KillMatrix, Rate, Vacuity
from truekernel.errors import BadInputError, MachineError
from truekernel.report import html, wording, write_html


class Page(HTMLParser):
    """Tags must nest; collects ids, links and visible text."""

    VOID = frozenset({"meta", "link", "input", "br", "img", "col"})

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
    assert "kernelbench@1e-4 (scaled) accepts" in page.text
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
    assert text.count('<pre class="diff"') == 1 + len(summary.survivors) + len(summary.quarantined)


def test_first_survivor_is_shown_in_full_under_the_scores(summary, page):
    first = summary.survivors[0]
    assert len(first.accepted_by) == max(len(s.accepted_by) for s in summary.survivors)
    example = page.text[page.text.index("One wrong kernel that passes") : page.text.index("Where the mutants went")]
    assert f"{len(first.accepted_by)} of 5 checkers accept it" in example
    assert f"truekernel replay {first.id}" in example and wording.witness_words(first.witness) in example


def test_replay_without_the_run_is_possible(summary, page):
    survivors = page.text[page.text.index("Surviving mutants") :]
    assert "A replay needs the run" in survivors
    assert wording.audit_command(summary) in survivors[: survivors.index("shown") if "shown" in survivors else 3000]


def test_sizes_of_error_are_a_table_with_an_explanation(summary, page):
    assert "By size of error" in page.text
    assert "one standard deviation of honest rounding" in page.text
    assert f"Of the {wording.count(wording.leading(summary).miss_gross.n)} grossly wrong ones" in page.text


def test_checkers_and_recipes_are_explained(page):
    method = page.text[page.text.index("What the figures mean") :]
    assert "exact-official Ours, for comparison" in method
    assert "base[*factor][+offset][&parameters][@place]" in method
    assert "uniform uniform in [0, 1), as torch.rand" in method


def test_matrix_names_its_cases(page):
    legend = page.text[page.text.index("Which case stands where") :]
    assert re.search(r"trial 1 to trial 5 uniform", legend)


def test_rules_are_counted_against_all(summary, page):
    assert f"{len(summary.rules)} of 277 rules made a mutant here" in page.text


def test_every_quarantined_mutant_has_its_kind(summary, text):
    for kind in ("identical", "masked", "unobserved"):
        assert text.count(f'data-kind="{kind}"') == sum(m.kind == kind for m in summary.quarantined) > 0


def test_hazards_have_a_place(summary, page):
    assert f"All {len({h.mutant for h in summary.hazards})} mutants with a hazard" in page.text
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
    kinds = page.text[page.text.index("Miss rate by kind") : page.text.index("Detection against")]
    assert "exact-official" in kinds and "truekernel" not in kinds


def test_only_a_broken_checker_leaves_no_empty_tables(summary):
    broken = summary.checkers[-1].model_copy(update={"broken": "truekernel raised KeyError: 'x'"})
    alone = summary.model_copy(update={"checkers": (broken,), "curves": (), "gain": None})
    page = Page(html(alone))
    assert "truekernel could not be scored: raised KeyError: 'x'." in page.text
    assert "Miss rate by kind" not in page.text and "Kill matrix" not in page.text
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)


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


def test_a_device_stays_a_device_and_a_full_one_is_a_failure_of_the_machine(summary, tmp_path):
    for device in (Path("/dev/null"), Path("/dev/full")):
        if device.exists():
            before = device.stat()
            link = tmp_path / device.name
            link.symlink_to(device)
            for path in (device, link):
                if device.name == "full":
                    with pytest.raises(MachineError, match=r"No space left.*the run is kept"):
                        write_html(summary, path)
                else:
                    write_html(summary, path)
            assert (device.stat().st_ino, device.stat().st_mode) == (before.st_ino, before.st_mode)
            assert link.is_symlink()


def test_links_are_written_through(summary, text, tmp_path):
    target, link = tmp_path / "there.html", tmp_path / "link.html"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_html(summary, link)
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == text
    assert target.stat().st_mode & 0o777 == 0o640


def test_folders_and_deep_paths_are_refused(summary, tmp_path):
    with pytest.raises(BadInputError, match="is a directory"):
        write_html(summary, tmp_path)
    with pytest.raises(BadInputError, match="No such file"):
        write_html(summary, tmp_path / "a" / "b" / "report.html")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(BadInputError, match="choose another --html path"):
        write_html(summary, tmp_path / "circle")
    assert [path.name for path in tmp_path.iterdir()] == ["circle"]


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
    assert re.search(r'data-panel="matrix:rule"[^>]* hidden=""', done.stdout)
