import json
import zipfile

import pytest
from judge_files import PLAIN_REFERENCE

from truekernel.errors import BadInputError
from truekernel.judge.candidates import load_candidate
from truekernel.judge.check import check
from truekernel.judge.evidence import is_bundle, read_bundle, write_bundle
from truekernel.judge.posing import pose
from truekernel.judge.replaying import replay
from truekernel.judge.steps import new_secret


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sealed")
    (folder / "plain.py").write_text(PLAIN_REFERENCE)
    (folder / "mine.py").write_text("import torch\ndef go(x, y):\n    return y + torch.exp(-(x ** 2))\n")
    posed = pose(str(folder / "plain.py"))
    candidate = load_candidate(f"{folder / 'mine.py'}:go", posed.problem)
    secret = new_secret()
    verdict = check(candidate, posed, secret=secret)
    assert verdict.word == "right", verdict.why
    seal = write_bundle(folder / "bundle", candidate, posed, verdict, secret)
    assert write_bundle(folder / "bundle.zip", candidate, posed, verdict, secret) == seal
    return folder, candidate, posed, verdict, secret, seal


@pytest.mark.parametrize("name", ["bundle", "bundle.zip"])
def test_what_is_written_is_read(sealed, name):
    folder, candidate, _, verdict, secret, seal = sealed
    assert is_bundle(str(folder / name))
    bundle = read_bundle(folder / name)
    assert (bundle.candidate, bundle.verdict, bundle.secret, bundle.seal) == (candidate, verdict, secret, seal)
    assert bundle.problem == "plain"


def test_it_holds_what_a_stranger_needs(sealed):
    folder = sealed[0]
    names = {str(path.relative_to(folder / "bundle")) for path in (folder / "bundle").rglob("*") if path.is_file()}
    assert names == {
        "candidate/mine.py",
        "candidate.json",
        "problem/plain.py",
        "problem.json",
        "seeds.json",
        "environment.json",
        "verdict.json",
        "chain.json",
    }
    about = json.loads((folder / "bundle" / "environment.json").read_text())
    assert (
        about["commands"]["check with new seeds"] == "truekernel check candidate/mine.py:go --problem problem/plain.py"
    )
    assert {"torch", "truekernel"} <= set(about["versions"]) and about["walls"]


def test_replay_repeats_the_verdict(sealed):
    repeated = replay(sealed[0] / "bundle.zip")
    assert repeated.same, repeated.differs
    assert repeated.bits and repeated.seal == sealed[5]


def copied(sealed, target):
    source = sealed[0] / "bundle"
    for path in source.rglob("*"):
        if path.is_file():
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
    return target


@pytest.mark.parametrize(
    "name",
    [
        "candidate/mine.py",
        "candidate.json",
        "problem/plain.py",
        "problem.json",
        "seeds.json",
        "environment.json",
        "verdict.json",
    ],
)
def test_a_change_anywhere_is_refused(sealed, tmp_path, name):
    place = copied(sealed, tmp_path / "b")
    text = (place / name).read_text()
    (place / name).write_text(text.replace("e", "E", 1))
    with pytest.raises(BadInputError, match=f"tampered with: {name}"):
        read_bundle(place)


def test_files_that_come_and_go_are_refused(sealed, tmp_path):
    place = copied(sealed, tmp_path / "b")
    (place / "more.json").write_text("{}")
    with pytest.raises(BadInputError, match=r"unlisted more\.json"):
        read_bundle(place)
    (place / "more.json").unlink()
    (place / "seeds.json").unlink()
    with pytest.raises(BadInputError, match=r"lacks seeds\.json"):
        read_bundle(place)


def test_a_chain_that_was_made_again_has_another_seal(sealed, tmp_path):
    from truekernel.judge.evidence import chain

    place = copied(sealed, tmp_path / "b")
    order = [link["file"] for link in json.loads((place / "chain.json").read_text())["files"]]
    (place / "environment.json").write_text("{}")
    files = {name: (place / name).read_text() for name in order}
    (place / "chain.json").write_text(json.dumps(chain(files)))
    assert read_bundle(place).seal != sealed[5]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"files": 3}', '{"files": [{}]}'])
def test_a_chain_that_is_none(sealed, tmp_path, text):
    place = copied(sealed, tmp_path / "b")
    (place / "chain.json").write_text(text)
    with pytest.raises(BadInputError, match=r"chain.json can't be read|tampered|unlisted"):
        read_bundle(place)


def test_what_is_no_bundle(tmp_path):
    (tmp_path / "x.zip").write_text("no zip")
    with pytest.raises(BadInputError, match="neither a directory nor a zip"):
        read_bundle(tmp_path / "x.zip")
    with zipfile.ZipFile(tmp_path / "y.zip", "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(BadInputError, match=r"no chain.json"):
        read_bundle(tmp_path / "y.zip")
    with pytest.raises(BadInputError, match="can't read"):
        read_bundle(tmp_path / "gone.zip")
    assert not is_bundle("0123456789abcdef")


def test_nothing_is_overwritten(sealed):
    folder, candidate, posed, verdict, secret, _ = sealed
    with pytest.raises(BadInputError, match="already exists"):
        write_bundle(folder / "bundle", candidate, posed, verdict, secret)
    with pytest.raises(BadInputError, match="there is no folder"):
        write_bundle(folder / "no" / "bundle", candidate, posed, verdict, secret)
