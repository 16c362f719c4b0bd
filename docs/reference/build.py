"""Write the reference pages from the package itself: `python docs/reference/build.py` (or `make docs`)."""

from __future__ import annotations

import io
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from rich.console import Console

from truekernel import mutation
from truekernel.audit import searching
from truekernel.audit.summary import SCHEMA_VERSION, ReplayResult, Summary
from truekernel.cases import grammar, least, recipes, stretched, wide, witness
from truekernel.checkers import truekernel as our_checker
from truekernel.cli.application import COMMANDS, application
from truekernel.judge.compare.records import Compared
from truekernel.judge.gauntlet.catalogue import ATTACKS
from truekernel.judge.gauntlet.classes import CLASSES, NEEDS

HERE = Path(__file__).parent


def commands() -> str:
    """Every command's help text."""
    parts = [
        "# Commands",
        "",
        "Options come from defaults, then from `[tool.truekernel.COMMAND]` in `pyproject.toml`, then from the command line. Lists may be given by "
        "repeating an option or with commas, and by its singular or plural name (`--rule`, `--rules`). "
        "People's output and `--json` documents go to standard output, notes and progress to standard error. Output is plain when it is not a terminal or when "
        "`NO_COLOR` is set.",
        "",
        "| exit code | means |",
        "|---|---|",
        "| 0 | the answer is good |",
        "| 1 | the answer is bad: a miss rate over `--fail-over`, a candidate that is not shown to be right, no candidate that can be advised, a replay that differs, a machine that can't run audits |",
        "| 2 | the call was wrong; one line says what and how to mend it |",
        "| 3 | the machine failed, never blamed on a kernel |",
    ]
    for command in COMMANDS:
        out = io.StringIO()
        console = Console(file=out, width=110, color_system=None)
        name = command.__name__.replace("_", "-")
        application()([name, "--help"], console=console)
        text = out.getvalue().split("Exit codes:")[0]
        parts += [
            "",
            f"## truekernel {name}",
            "",
            "```",
            "\n".join(map(str.rstrip, text.strip().splitlines())),
            "```",
        ]
    return "\n".join(parts) + "\n"


def summary() -> str:
    """The fields of the JSON documents, from the records' docstrings."""
    parts = [
        "# The JSON documents",
        "",
        f"`truekernel audit --json` and `truekernel report RUN --json` print a `Summary`, schema version {SCHEMA_VERSION}; `truekernel replay MUTANT --json` prints a "
        "`ReplayResult`; `truekernel compare --json` prints a `Compared`, and `truekernel check --json` a `Verdict`. In Python, `truekernel.Summary.model_validate_json(text)` reads the first, and `truekernel.Summary.model_json_schema()` is its JSON schema. Shares are between 0 and 1.",
    ]
    schemas = [Summary.model_json_schema(), ReplayResult.model_json_schema(), Compared.model_json_schema()]
    shown: dict[str, dict[str, Any]] = {}
    for schema in schemas:
        shown[schema["title"]] = schema
        shown |= schema.get("$defs", {})
    for name, schema in shown.items():
        parts += [
            "",
            f"## {name}",
            "",
            " ".join(schema.get("description", "").split()),
            "",
            "| field | type | meaning |",
            "|---|---|---|",
        ]
        for field, spec in schema["properties"].items():
            meaning = " ".join(spec.get("description", "").split()).replace("|", "\\|")
            parts.append(f"| `{field}` | {_type(spec)} | {meaning} |")
    return "\n".join(parts) + "\n"


def _type(spec: dict[str, Any]) -> str:
    if "$ref" in spec:
        name = spec["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in spec:
        return " or ".join(_type(one) for one in spec["anyOf"])
    if "enum" in spec:
        return " or ".join(f'"{value}"' for value in spec["enum"])
    if spec.get("type") == "array":
        return (
            f"list of {_type(spec['items'])}"
            if "items" in spec
            else f"list of {len(spec['prefixItems'])} {_type(spec['prefixItems'][0])}"
        )
    if spec.get("type") == "object":
        return f"object of {_type(spec['additionalProperties'])}"
    return str(spec.get("type", "any"))


def rules() -> str:
    """All rules by class, with origin."""
    parts = ["# Mutation rules", "", "`truekernel rules NAME` shows a rule with its examples."]
    everything = [*mutation.rules().values(), *mutation.benign_rules().values()]
    seen = ""
    for rule in everything:
        if rule.rule_class != seen:
            seen = rule.rule_class
            parts += ["", f"## {seen}", "", "| rule | what it does | source |", "|---|---|---|"]
        cells = (f"`{rule.name}`", rule.description, rule.source)
        parts.append("| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(parts) + "\n"


CATALOGUE_CLASSES = {
    "A": "arithmetic",
    "I": "index",
    "B": "boundary",
    "M": "semantic",
    "S": "block synchronisation",
    "W": "warp",
    "T": "atomics and memory order",
    "Y": "asynchronous copies",
    "P": "precision",
    "H": "hardware and launch",
}


def operator_catalogue() -> str:
    """The entries of the catalogue that rules cite, with the rules that make them."""
    cited: dict[str, list[mutation.Rule]] = defaultdict(list)
    for rule in [*mutation.rules().values(), *mutation.benign_rules().values()]:
        if "catalogue" in rule.source:
            for entry in re.findall(rf"\b[{''.join(CATALOGUE_CLASSES)}]\d\d\b", rule.source):
                cited[entry].append(rule)
    parts = [
        "# The operator catalogue",
        "",
        "Our own list of kinds of faults that GPU kernels are known to have. An entry is a letter for the class and a number. Below are those that [rules](rules.md) cite; the others, which no rule "
        "makes, are left out, so that numbers have gaps. Each rule's words say what it does to a kernel, and where it is only a part of the entry or has a published origin too, its source says so.",
    ]
    for letter, title in CATALOGUE_CLASSES.items():
        parts += ["", f"## {letter}: {title}", "", "| entry | the fault, rule by rule |", "|---|---|"]
        for entry in sorted(entry for entry in cited if entry[0] == letter):
            faults = "<br>".join(f"`{rule.name}`: {_cell(rule.description)}" for rule in cited[entry])
            parts.append(f"| {entry} | {faults} |")
    return "\n".join(parts) + "\n"


def recipe_strings() -> str:
    """How cases name their values and shapes."""
    parts = [
        "# Recipes",
        "",
        "A case is a problem, its axis lengths, a recipe and a seed; together they give the same bits on every machine. Reports and replays name the recipe.",
        "",
        *_paragraphs(grammar.__doc__),
        "",
        "A factor or offset for which a tensor's domain has no room is fitted to it; with the base `official` the tensor is left unscaled instead. Integer tensors are drawn uniformly from their domain, whatever "
        "the recipe. [`truekernel problems NAME`](commands.md) says how each tensor is drawn officially.",
        "",
        "| recipe | all values are |",
        "|---|---|",
        "| `official` | as the problem's benchmark draws them |",
        "| `normal*0.01` | normal, times 0.01 |",
        "| `normal+1000` | normal, plus 1000: large sums of squares, small variances |",
        "| `uniform*-1` | uniform in (-1, 0] |",
        "| `normal&parameters` | normal, weights too |",
        "| `subnormal@1` | drawn officially (first tensor) or zero, and subnormal in the second floating-point tensor |",
        "",
        "## Bases",
        "",
        "| base | values |",
        "|---|---|",
        *(f"| `{recipe.name}` | {_cell(recipe.description)} |" for recipe in recipes().values()),
        "",
        "## Shapes",
        "",
        "Every axis of a problem has an official length, an audit length and a few odd ones. The plans below name shapes made from them:",
        "",
        "| shape | lengths |",
        "|---|---|",
        "| audit | the audit lengths |",
        "| odd k | every axis takes one of its odd lengths above 1, if it has any; k starts k lengths later, and neighbouring axes are shifted against each other |",
        "| single k | the k-th shape, from the end, in which one axis alone is odd |",
        f"| wide | {_cell(wide.__doc__)} |",
        f"| least | {_cell(least.__doc__)} |",
        "| above, below | just above and just below the audit lengths |",
        "| tiles | whole multiples of 32 (8 for axes below 64) on all but short axes |",
        "| small, medium | two steps (a step: what all lengths of an axis are multiples of), and about half of the audit length |",
        "| three, eight | three steps, or another odd number where a suite uses three; and eight steps |",
        "| past | one more than a multiple of 64 on reduction and feature axes, or nine where these are short; all else a few |",
        "| powers | powers of two, the next above the audit lengths that no suite uses |",
        "| large | a little more than the audit length, twice that on spatial axes |",
        f"| many | at least {witness.REACH.block} on batch axes, all else a few |",
        f"| broad | at least {witness.REACH.block} on feature axes, or the last spatial axis where there are none, all else a few |",
        f"| broadest | the last feature axis, or spatial one where there are none, at least {witness.REACH.slack}; a head's elements, at least {witness.REACH.head}; all else a few |",
        f"| crowd | short rows: at least {witness.REACH.rows} for {', '.join(stretched.LOOPING)}, at least {witness.REACH.blocks} for others but matmul, convolution and pooling; for attention, {witness.REACH.heads} heads at the audit lengths |",
        f"| deep | the inner axis of matrix products, attention and convolutions, at most {2 * witness.REACH.tiles}; all else a few |",
        f"| plane | more than {witness.REACH.block} rows, each at least {witness.REACH.row} long; of matrix products, rows of the first matrix; not for convolution, attention and pooling |",
        f"| tower | more than {witness.REACH.slack} rows, each longer than {witness.REACH.block}, where rows need a block each |",
        f"| lone | as few rows as may be, {witness.REACH.outputs} elements in all, where rows need a block each |",
        f"| vast | images of more than {witness.REACH.outputs} outputs for pooling, of {witness.REACH.pixels} for convolutions |",
        f"| rest | {witness.REST[0]} rows of {witness.REST[1]}, all else one |",
        "| one | five in each axis, and one in the last axis of a row |",
        f"| drawn | up to {witness.DRAWN_COUNT} shapes drawn at random from the problem's name: all axes short, or some near a multiple of 8 |",
        f"| long | one axis within a row so long that a thread takes hundreds of elements, or at most {witness.REACH.tiles} for {', '.join(stretched.TILED)}; all else a few |",
        "| ten, tail | rows of ten; and one more than a multiple of 128 or 16 on reduction and feature axes; all else a few |",
        "",
        'The rows from "above" to "drawn" and "long" are the shapes of the witness search, which uses no length but one that a suite uses, wherever an axis may vary. `truekernel` has a long of its own, of other lengths.',
        "",
        "## Where they are used",
        "",
        "Published checkers: `official`, and for KernelBench-Verified `official*3`, `official*0.01` and `official*-1`, at audit lengths.",
        "",
        "`truekernel`, in order; whole numbers for linear problems and special values for problems that define them only; for problems that sum, "
        + " and ".join(f"`{new}` instead of `{old}`" for old, new in our_checker.INSTEAD_OF_RAMPS.items())
        + ":",
        "",
        *_plan(our_checker.PLAN),
        "",
        "The witness search, in order; special values and subnormal tensors only where a problem has a place for them. On shapes of many elements, special values are for mutants of the classes "
        + f"{', '.join(searching.NUMERIC)}, other orders of threads and other contents of memory for all others:",
        "",
        *_plan(witness.PLAN),
        "",
        f"Then {witness.DRAWN_COUNT} drawn shapes, by turns with {', '.join(f'`{recipe}`' for recipe in dict.fromkeys(witness.DRAWN))}.",
    ]
    return "\n".join(parts) + "\n"


def attacks() -> str:
    """Classes of cheats and the attacks that stand for them."""
    tried = {attack.number for attack in ATTACKS}
    parts = [
        "# Attacks",
        "",
        f"What `truekernel gauntlet` tries: {len(ATTACKS)} attacks, each with an honest twin, on {len(tried)} of {len(CLASSES)} known classes of cheats. With `--json` each attack tells its class.",
        "",
        "| class | what it is | attack | how | seen |",
        "|---|---|---|---|---|",
    ]
    for number, name in CLASSES.items():
        for attack in [attack for attack in ATTACKS if attack.number == number]:
            seen = f"[source]({attack.source})" if attack.source else ""
            parts.append(f"| {number} | {_cell(name)} | `{attack.name}` | {_cell(attack.title)} | {seen} |")
    parts += ["", "## Without an attack", "", "| class | what it is | what an attack would need |", "|---|---|---|"]
    parts += [f"| {number} | {_cell(CLASSES[number])} | {_cell(needs)} |" for number, needs in NEEDS.items()]
    return "\n".join(parts) + "\n"


def _plan(plan: tuple[tuple[str, str], ...]) -> list[str]:
    return ["| recipe | shape |", "|---|---|", *(f"| `{recipe}` | {shape} |" for recipe, shape in plan)]


def _paragraphs(text: str | None) -> list[str]:
    """A docstring as Markdown: one line a paragraph."""
    return "\n\n".join(" ".join(part.split()) for part in (text or "").strip().split("\n\n")).split("\n")


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


PAGES = {
    "commands.md": commands,
    "summary.md": summary,
    "rules.md": rules,
    "operator-catalogue.md": operator_catalogue,
    "recipes.md": recipe_strings,
    "attacks.md": attacks,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")
