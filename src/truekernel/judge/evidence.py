"""The evidence behind a verdict: one directory or zip, in which every file's hash enters the next, so that a change anywhere shows.

`chain.json` lists the files in order; link k is the SHA-256 of link k-1, the file's name and the SHA-256 of its content. The last link is the bundle's seal. Who has kept the seal
can tell a bundle made anew from the one that was sealed.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from truekernel.errors import BadInputError
from truekernel.judge.candidates import Candidate
from truekernel.judge.posing import Posed
from truekernel.judge.verdict import FORMAT, Verdict

CHAIN = "chain.json"
START = "truekernel evidence"
LARGEST = 32 << 20
"""Bytes of a file in a bundle that is read: a bundle comes from outside."""
MOST_FILES = 16


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a bundle says. `problem`: a name of the corpus, or of the file whose text is `reference`, without ".py"."""

    verdict: Verdict
    candidate: Candidate
    secret: str
    declared: str
    problem: str
    reference: str
    seal: str


def check_place(place: Path) -> None:
    """Refuse what already exists. Raises BadInputError."""
    if place.exists():
        raise BadInputError(f"--bundle {place}: already exists: name a new directory or .zip file")
    if not place.parent.is_dir():
        raise BadInputError(f"--bundle {place}: there is no folder {place.parent}")


def write_bundle(
    place: Path, candidate: Candidate, posed: Posed, verdict: Verdict, secret: str, *, declared: str = ""
) -> str:
    """Write a bundle to a new directory, or to a zip where the name ends so. Returns its seal. Raises BadInputError, OSError."""
    check_place(place)
    files = contents(candidate, posed, verdict, secret, declared=declared)
    if place.suffix == ".zip":
        with zipfile.ZipFile(place, "x", zipfile.ZIP_DEFLATED) as archive:
            for name, text in files.items():
                archive.writestr(name, text)
    else:
        place.mkdir()
        for name, text in files.items():
            path = place / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return str(json.loads(files[CHAIN])["seal"])


def contents(
    candidate: Candidate, posed: Posed, verdict: Verdict, secret: str, *, declared: str = ""
) -> dict[str, str]:
    """The files of a bundle by name, the chain last."""
    files = {f"candidate/{name}": text for name, text in candidate.files.items()}
    files["candidate.json"] = _text(
        {
            "name": candidate.name,
            "form": candidate.form,
            "attribute": candidate.attribute,
            "source": candidate.source,
            "plan": candidate.plan,
            "sha256": candidate.digest,
        }
    )
    if posed.text:
        files[f"problem/{posed.stem}.py"] = posed.text
    name = posed.stem if posed.text else posed.problem.name
    files["problem.json"] = _text(
        {"name": name, "is_file": bool(posed.text), "sha256": posed.digest, "shapes": posed.shapes()}
    )
    files["seeds.json"] = _text({"secret": secret, "declared": declared})
    files["environment.json"] = _text(
        {
            "versions": verdict.versions,
            "walls": [wall.model_dump() for wall in verdict.walls],
            "commands": commands(candidate, posed, declared),
        }
    )
    files["verdict.json"] = verdict.model_dump_json(indent=1) + "\n"
    files[CHAIN] = _text(chain(files))
    return files


def commands(candidate: Candidate, posed: Posed, declared: str) -> dict[str, str]:
    """What to type to do the same again."""
    file = next(iter(candidate.files))
    named = f"candidate/{file}" + (f":{candidate.attribute}" if candidate.form == "function" else "")
    problem = f"problem/{posed.stem}.py" if posed.text else posed.problem.name
    words = f"truekernel check {named} --problem {problem}" + (f" --precision {declared}" if declared else "")
    return {"check with new seeds": words, "repeat this verdict": "truekernel replay BUNDLE"}


def chain(files: Mapping[str, str]) -> dict[str, Any]:
    """The chained hashes of files in their order."""
    link = hashlib.sha256(START.encode()).hexdigest()
    links = []
    for name, text in files.items():
        content = hashlib.sha256(text.encode()).hexdigest()
        link = hashlib.sha256(f"{link} {name} {content}".encode()).hexdigest()
        links.append({"file": name, "sha256": content, "link": link})
    return {"format": FORMAT, "files": links, "seal": link}


def read_bundle(place: Path) -> Bundle:
    """Read a bundle. Raises BadInputError when it is none, when its hashes do not hold, or when another version made it."""
    files = _read(place)
    if CHAIN not in files:
        raise BadInputError(f"{place}: not a bundle: it has no {CHAIN}")
    try:
        stated = json.loads(files.pop(CHAIN))
        order = [link["file"] for link in stated["files"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BadInputError(f"{place}: {CHAIN} can't be read") from None
    missing, extra = set(order) - set(files), set(files) - set(order)
    if missing or extra:
        raise BadInputError(
            f"{place}: tampered with: {'lacks' if missing else 'holds an unlisted'} {min(missing or extra)}"
        )
    found = chain({name: files[name] for name in order})
    for ours, theirs in zip(found["files"], stated["files"], strict=True):
        if ours != theirs:
            raise BadInputError(f"{place}: tampered with: {ours['file']} is not what was sealed")
    if found["seal"] != stated.get("seal"):
        raise BadInputError(f"{place}: tampered with: the seal does not hold")
    if stated.get("format") != FORMAT:
        raise BadInputError(
            f"{place}: made by another version (format {stated.get('format')}, this one reads {FORMAT})"
        )
    try:
        return _bundle(files, found["seal"])
    except (ValueError, KeyError, TypeError, ValidationError, RecursionError) as error:
        text = str(error).splitlines()[0]
        raise BadInputError(f"{place}: not a bundle of this version: {text}") from None


def _bundle(files: Mapping[str, str], seal: str) -> Bundle:
    about, seeds, problem = (json.loads(files[f"{name}.json"]) for name in ("candidate", "seeds", "problem"))
    verdict = Verdict.model_validate_json(files["verdict.json"])
    name, form = str(about["name"]), about["form"]
    suffix = ".cu" if form in ("plan", "solve") else ".py"
    text = files[f"candidate/{name}{suffix}"]
    plan = files[f"candidate/{name}.py"] if form == "plan" else str(about["plan"])
    source = text if form == "plan" else str(about["source"])
    candidate = Candidate(name, form, text, source, plan, str(about["attribute"]))
    if not candidate.digest == about["sha256"] == verdict.candidate_sha256:
        raise ValueError("the verdict is on another candidate")
    return Bundle(
        verdict=verdict,
        candidate=candidate,
        secret=str(seeds["secret"]),
        declared=str(seeds["declared"]),
        problem=str(problem["name"]),
        reference=files[f"problem/{problem['name']}.py"] if problem["is_file"] else "",
        seal=seal,
    )


def _read(place: Path) -> dict[str, str]:
    try:
        if place.is_dir():
            paths = sorted(path for path in place.rglob("*") if path.is_file())
            _few(len(paths), max((path.stat().st_size for path in paths), default=0), place)
            return {str(path.relative_to(place)): path.read_text(encoding="utf-8") for path in paths}
        with zipfile.ZipFile(place) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            _few(len(entries), max((entry.file_size for entry in entries), default=0), place)
            return {entry.filename: archive.read(entry).decode("utf-8") for entry in entries}
    except (zipfile.BadZipFile, UnicodeDecodeError):
        raise BadInputError(f"{place}: not a bundle, neither a directory nor a zip") from None
    except OSError as error:
        raise BadInputError(f"can't read {place}: {error.strerror or error}") from None


def _few(count: int, largest: int, place: Path) -> None:
    if count > MOST_FILES or largest > LARGEST:
        raise BadInputError(f"{place}: not a bundle: it has {count} files, the largest of {largest} bytes")


def _text(document: Any) -> str:
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def is_bundle(name: str) -> bool:
    """Whether a path looks like a bundle: a zip, or a directory with a chain."""
    place = Path(name)
    try:
        return (
            place.suffix == ".zip"
            or (place / CHAIN).is_file()
            or (place.is_dir() and (place / "verdict.json").is_file())
        )
    except OSError:  # too long for a file's name
        return False


def reference_file(bundle: Bundle) -> Path:
    """The reference of a bundle as a file."""
    path = Path(tempfile.mkdtemp(prefix="truekernel-problem-")) / f"{bundle.problem}.py"
    path.write_text(bundle.reference, encoding="utf-8")
    return path
