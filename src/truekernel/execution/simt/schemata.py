"""Mutant schemata: many variants of one source in one copy, chosen at run time.

Source of the idea: R. H. Untch, A. J. Offutt, M. J. Harrold, "Mutation Analysis Using Mutant Schemata", ISSTA 1993.

Each edit is lifted to the expression or statement that holds it (`hosts`), which becomes
`(tk_variant == 7 ? (edited) : (original))` or `if (tk_variant == 7) { edited } else original`. A check at compile time holds both
arms of an expression to one type, so that the original keeps its meaning. Variants that can't be lifted, or that the
compiler complains about, are left over for `compile_batch`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from truekernel.errors import BadInputError
from truekernel.execution.simt.compile import build_unit, failure
from truekernel.execution.simt.diagnostics import errors
from truekernel.execution.simt.flags import Options
from truekernel.execution.simt.hosts import Arm, Host, Hosts
from truekernel.execution.simt.kit import Kit, kit, native_sources
from truekernel.execution.simt.library import CompileFailure, Library
from truekernel.execution.simt.preparation import MAIN_FILE, unit
from truekernel.execution.simt.toolchain import Compiler, default_compiler
from truekernel.model import Edit

LARGEST = 120
"""Variants in one translation unit. The cost of a unit hardly depends on it; a failing one costs its whole unit again."""
_ROUNDS = 4
_CHECK = """#include <type_traits>
template <int Variant, class New, class Old> struct tk_same {
  static_assert(std::is_same<std::decay_t<New>, std::decay_t<Old>>::value, "the arms differ in type");
};
"""


@dataclass(frozen=True, slots=True)
class SchemaResult:
    """`members`: the library of each variant that was built in. `leftovers`: variants to be compiled as copies of their own.
    `failures`: {0: why} when the original itself does not compile; then everything is left over."""

    libraries: tuple[Library, ...]
    members: Mapping[int, Library]
    leftovers: tuple[int, ...]
    failures: Mapping[int, CompileFailure]

    @property
    def library(self) -> Library | None:
        """The only library, when there is one."""
        return self.libraries[0] if len(self.libraries) == 1 else None


def compile_schema(
    source: str,
    kernels: Sequence[str],
    variants: Mapping[int, tuple[Edit, ...]],
    options: Options | None = None,
    *,
    compiler: Compiler | None = None,
) -> SchemaResult:
    """Compile `source` so that variant v (1 or more) makes `variants[v]` when it is chosen, and variant 0 nothing.

    A `Library` here runs as `server.run(library, v, ...)`. Every variant is either in `members` or in `leftovers`.
    """
    if any(number < 1 for number in variants):
        raise BadInputError("variants are numbered from 1; 0 is the original")
    chosen = options or Options()
    tools = kit(compiler or default_compiler(), chosen)
    hosts = Hosts(source, macros=_shim_macros(), contracts=chosen.fma)
    lifted = {number: arms for number, edits in variants.items() if (arms := hosts.arms(edits))}
    libraries: list[Library] = []
    members: dict[int, Library] = {}
    failures: dict[int, CompileFailure] = {}
    for group in _groups(lifted):
        for built in _build(source, tuple(kernels), group, tools, failures):
            libraries.append(built)
            members.update(dict.fromkeys(built.variants, built))
        if failures:
            break
    leftovers = tuple(number for number in variants if number not in members)
    return SchemaResult(tuple(libraries), members, leftovers, failures)


def schema_text(source: str, variants: Mapping[int, Iterable[Arm]]) -> str:
    """`source` with the arms of all variants, each under its own file name in diagnostics and with its own lines."""
    arms: dict[Host, list[tuple[int, str]]] = {}
    for number, own in variants.items():
        for arm in own:
            arms.setdefault(arm.host, []).append((number, arm.text))
    data = source.encode()
    order = sorted(arms, key=lambda host: (host.start, -host.end))
    return _between(data, 0, len(data), order, arms)


def variant_file(number: int) -> str:
    """What diagnostics call the text of a variant's arm."""
    return f"variant_{number}.cu"


def _between(
    data: bytes, start: int, end: int, hosts: Sequence[Host], arms: Mapping[Host, list[tuple[int, str]]]
) -> str:
    """Text of bytes [start, end) with the hosts inside it switched."""
    pieces, at, k = [], start, 0
    while k < len(hosts):
        host = hosts[k]
        inner = k + 1
        while inner < len(hosts) and hosts[inner].start < host.end:
            inner += 1
        pieces.append(data[at : host.start].decode())
        original = _between(data, host.start, host.end, hosts[k + 1 : inner], arms)
        plain = data[host.start : host.end].decode()
        pieces.append(_switched(host, plain, original, arms[host]))
        at, k = host.end, inner
    pieces.append(data[at:end].decode())
    return "".join(pieces)


def _switched(host: Host, plain: str, original: str, arms: Sequence[tuple[int, str]]) -> str:
    back = f'\n#line {host.line} "{MAIN_FILE}"\n'
    pieces = []
    for number, text in arms:
        here = f'\n#line {host.line} "{variant_file(number)}"\n'
        if host.category == "statement":
            pieces.append(f"{{ if (tk_variant == {number}) {{{here}{text}\n}} else {back}")
        else:
            check = f"(void)tk_same<{number}, decltype(({text}\n)), decltype(({plain}\n))>{{}}"
            pieces.append(f"(tk_variant == {number} ?{here}{check}, ({text}\n) :{back}")
    if host.category == "statement":
        return "".join(pieces) + original + "}" * len(arms)
    return "".join(pieces) + f"({original})" + ")" * len(arms)


def _groups(lifted: Mapping[int, tuple[Arm, ...]]) -> list[dict[int, tuple[Arm, ...]]]:
    numbered = list(lifted.items())
    count = -(-len(numbered) // LARGEST)
    return [dict(numbered[k::count]) for k in range(count)]


def _build(
    source: str,
    kernels: tuple[str, ...],
    group: dict[int, tuple[Arm, ...]],
    tools: Kit,
    failures: dict[int, CompileFailure],
) -> list[Library]:
    """Libraries that hold the variants of `group` that compile; those that the compiler names are dropped, else the group is halved."""
    log = ""
    for _ in range(_ROUNDS):
        if not group:
            break
        text = _CHECK + unit(schema_text(source, group), kernels)
        built = build_unit(text, kernels, tools, variants=tuple(group))
        if built.library is not None:
            return [built.library]
        log = built.log
        blamed = _blamed(log, group)
        if not blamed:
            break
        group = {number: arms for number, arms in group.items() if number not in blamed}
    if len(group) < 2:
        if group and build_unit(unit(source, kernels), kernels, tools).library is None:
            failures[0] = failure(log, MAIN_FILE)
        return []
    numbers = list(group)
    found = []
    for half in (numbers[::2], numbers[1::2]):
        if not failures:
            found += _build(source, kernels, {n: group[n] for n in half}, tools, failures)
    return found


def _blamed(log: str, group: Mapping[int, tuple[Arm, ...]]) -> set[int]:
    """Variants that errors name, by the file of their arm or by the check of types; else those that switch the line of an error."""
    named = {int(n) for n in re.findall(r"variant_(\d+)\.cu:\d+:(?:\d+:)? (?:fatal )?error", log)}
    named |= {int(n) for n in re.findall(r"tk_same<(\d+)", log)}
    if named & group.keys():
        return named & group.keys()
    lines = {d.line for d in errors(log) if d.file == MAIN_FILE}
    return {number for number, arms in group.items() if any(arm.host.line in lines for arm in arms)}


@lru_cache(maxsize=1)
def _shim_macros() -> frozenset[str]:
    headers = (native_sources() / "include").glob("**/*.h")
    return frozenset(name for h in headers for name in re.findall(r"^#define (\w+)\(", h.read_text(), re.MULTILINE))
