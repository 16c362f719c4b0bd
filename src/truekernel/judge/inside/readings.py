"""What a CUDA source is to another compiler: names in its conditions that tell the CPU backend's compiler from a GPU's, and the text as it reads where they are otherwise.

Only directives are read; what the program does with such a name elsewhere, or finds out while it runs, does not show here.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection

SAME = frozenset(
    (
        "__CUDACC__",
        "__NVCC__",
        "__CUDA_ARCH__",
        "__CUDACC_VER_MAJOR__",
        "__CUDACC_VER_MINOR__",
        "CUDART_VERSION",
        "CUDA_VERSION",
        "__cplusplus",
    )
)
"""Defined by a GPU's compiler too, though perhaps with another value."""
VERSIONS = re.compile(r"__CUDA_ARCH__|__CUDACC_VER_\w+|CUDART_VERSION|CUDA_VERSION")
MOST_NAMES = 3
UNDEFINED, DEFINED = "truekernel_not_defined", "__CUDACC__"
_ELSEWHERE = re.compile(r"__CUDA\w*|__NV\w*|__EDG\w*")
"""Of these, a GPU's compiler defines more than the backend does."""
_BACKEND = re.compile(r"TK_\w*|tk_\w*|__SANITIZE\w*|__has_\w+")
_QUESTION = re.compile(r"__has_\w+[ \t]*\([^()\n]*\)")
_SPLICED = re.compile(r"^(?:[^\n]*\\[ \t]*\r?\n)+[^\n]*", re.MULTILINE)
_SPLICE = re.compile(r"\\[ \t]*\r?\n")
_COMMENT = r"/\*(?:(?!\*/)[\s\S])*\*/"
_DIRECTIVE = re.compile(
    rf"(?P<head>(?:#|%:|\?\?=)(?:[ \t]|{_COMMENT})*(?P<kind>if|ifdef|ifndef|elif|elifdef|elifndef|define|undef)\b)"
    rf"(?P<rest>(?:{_COMMENT}|[^\n])*)"
)
_INCLUDE = re.compile(r"[ \t]*(?:#|%:)[ \t]*include\b")
_NAME = re.compile(r"\b[A-Za-z_]\w*")


def joined(text: str) -> str:
    """The text with continued lines in one, and as many lines as before."""
    return _SPLICED.sub(lambda m: _SPLICE.sub("", m[0]) + "\n" * len(_SPLICE.findall(m[0])), text)


def asked(text: str) -> set[str]:
    """Names that decide conditions, those in the bodies of macros that decide them included."""
    found: set[str] = set()
    bodies: dict[str, set[str]] = {}
    for match in _DIRECTIVE.finditer(joined(text)):
        names = _NAME.findall(match["rest"])
        if match["kind"] == "define":
            bodies.setdefault(names[0] if names else "", set()).update(names[1:])
        elif match["kind"] != "undef":
            found |= set(names)
    new = found
    while new:
        new = {inner for name in new for inner in bodies.get(name, ())} - found
        found = found | new
    return found - {"defined"}


def includes(text: str) -> str:
    """The lines of a text that include headers."""
    return "\n".join(line for line in joined(text).split("\n") if _INCLUDE.match(line)) + "\n"


def defined(text: str) -> set[str]:
    """Names of the macros that a text defines."""
    kinds = (m for m in _DIRECTIVE.finditer(joined(text)) if m["kind"] == "define")
    return {names[0] for match in kinds if (names := _NAME.findall(match["rest"]))}


def telling(text: str, predefined: Collection[str]) -> list[str]:
    """Names in conditions by which a text can tell where it is compiled. `predefined`: macros that are there without its doing."""
    own = defined(text) - set(predefined)
    return sorted(
        name
        for name in asked(text) - own - SAME
        if name in predefined or _ELSEWHERE.fullmatch(name) or _BACKEND.fullmatch(name)
    )


def readings(text: str, names: Collection[str], predefined: Collection[str]) -> list[str]:
    """The text with some of these names otherwise: not defined where they are, defined where they are not; all choices."""
    found = []
    for count in range(1, len(names) + 1):
        for chosen in itertools.combinations(sorted(names), count):
            instead = {name: UNDEFINED if name in predefined else DEFINED for name in chosen}
            found.append(_otherwise(joined(text), instead))
    return found


def _otherwise(text: str, instead: dict[str, str]) -> str:
    return _DIRECTIVE.sub(lambda match: match["head"] + _with(match["rest"], instead), text)


def _with(rest: str, instead: dict[str, str]) -> str:
    rest = _QUESTION.sub(lambda m: "0" if _NAME.findall(m[0])[0] in instead else m[0], rest)
    return _NAME.sub(lambda m: instead.get(m[0], m[0]), rest)
