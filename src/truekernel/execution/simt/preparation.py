"""The text that is compiled: a CUDA source with the few changes that the shim can't do without, and the exports of its kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence

from truekernel.execution.simt.launch_bounds import launch_bounds

_DYNAMIC = re.compile(
    r"\b(?:extern\b[^;{}]*?\b__shared__|__shared__\b[^;{}]*?\bextern)\b[^;{}]*?\[\s*\][^;{}]*;", re.DOTALL
)
_LINKAGE_BLOCK = re.compile(r'\bextern\s*"C(?:\+\+)?"\s*\{')
_LINKAGE = re.compile(r'\bextern(\s*)"C(?:\+\+)?"')
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[^\n]*", re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#[ \t]*(?:define|undef)[ \t]+(\w+)", re.MULTILINE)

MAIN_FILE = "kernel.cu"
EXPORTS = "launch plan"


def prepared(source: str) -> str:
    """`source` with dynamic shared memory named for the runtime and without C linkage, which copies of one name would share.

    Line breaks stay where they are.
    """
    source = _DYNAMIC.sub(_name_dynamic, source)
    source = _LINKAGE_BLOCK.sub("inline namespace tk_linkage {", source)
    return _LINKAGE.sub(lambda match: match[1], source)


def unit(source: str, kernels: Sequence[str]) -> str:
    """A translation unit of one source; its kernels are exported as member 0."""
    return f'#line 1 "{MAIN_FILE}"\n{prepared(source)}\n{exports(0, kernels, source)}'


def members_unit(sources: Sequence[tuple[int, str]], kernels: Sequence[str]) -> str:
    """A translation unit of several sources, each in a namespace of its own, its file called `member_file(number)`.

    Headers are included once, in front of all, and macros of one source are forgotten before the next.
    """
    includes = dict.fromkeys(line for _, source in sources for line in _INCLUDE.findall(source))
    pieces = ["\n".join(includes)]
    for number, source in sources:
        body = _INCLUDE.sub("", prepared(source))
        macros = dict.fromkeys(_MACRO.findall(body))
        pieces += [f'#pragma push_macro("{name}")' for name in macros]
        pieces.append(f'namespace tk_member_{number} {{\n#line 1 "{member_file(number)}"\n{body}')
        pieces.append(f"{exports(number, kernels, source)}}}")
        pieces += [f'#pragma pop_macro("{name}")' for name in reversed(macros)]
    return "\n".join(pieces) + "\n"


def member_file(number: int) -> str:
    """What diagnostics call the source of a member."""
    return f"member_{number}.cu"


def exports(member: int, kernels: Sequence[str], source: str) -> str:
    """Definitions that make the kernels of a source callable by the symbols `entry_symbol(member, position)`."""
    bounds = launch_bounds(source, kernels)
    lines = [
        f"TK_EXPORT({entry_symbol(member, k)}, {bound}, {kernel})\n"
        for k, (kernel, bound) in enumerate(zip(kernels, bounds, strict=True))
    ]
    return f'#line 1 "{EXPORTS}"\n' + "".join(lines)


def entry_symbol(member: int, position: int) -> str:
    """Symbol of the `position`-th kernel of a member; the native server builds the same names."""
    return f"tk_entry_{member}_{position}"


def _name_dynamic(match: re.Match[str]) -> str:
    text = re.sub(r"\bextern\b", "", match[0], count=1)
    text = re.sub(r"\b__shared__\b", "extern TK_DYNAMIC_SHARED", text, count=1)
    return f"{text[:-1]} TK_DYNAMIC_LABEL;"
