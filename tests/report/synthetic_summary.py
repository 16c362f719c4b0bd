"""Invented audit results with the shape of real ones: every figure is computed from invented mutants, so that all sums hold."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from truekernel.audit.intervals import settling, two_factor_split
from truekernel.audit.scores import (
    ERROR_SIZES,
    GROSS,
    CheckerScore,
    CurveMark,
    CurvePoint,
    ErrorSize,
    GainSplit,
    GroupRate,
    KillColumn,
    KillMatrix,
    KillRow,
    Rate,
    SettlingPoint,
    ToleranceCurve,
    Vacuity,
    VacuityGap,
    VacuousEntry,
)
from truekernel.audit.summary import (
    Change,
    Counts,
    HazardSummary,
    ProgramSummary,
    QuarantinedSummary,
    RuleSummary,
    RunFacts,
    Summary,
    SurvivorSummary,
    WitnessSummary,
    WorstElement,
)
from truekernel.model import RULE_CLASSES

PROBLEMS = {
    "softmax": "softmax",
    "log_softmax": "softmax",
    "layer_norm": "normalisation",
    "rms_norm": "normalisation",
    "batch_norm": "normalisation",
    "sum_rows": "reduction",
    "l2_norm": "reduction",
    "argmax": "arg_reduction",
    "cumsum": "scan",
    "matmul": "matmul",
    "matmul_half": "matmul",
    "gelu": "activation",
    "leaky_relu": "activation",
    "vector_add": "elementwise",
    "conv2d": "convolution",
    "max_pool2d": "pooling",
    "cross_entropy": "loss",
    "attention": "attention",
}
RULES = {
    "arithmetic": [
        "plus-to-minus",
        "times-to-divide",
        "drop-addend",
        "drop-factor",
        "accumulate-to-assign",
        "sqrt-to-rsqrt",
    ],
    "index": ["axis-swap", "thread-for-block", "row-column-swap", "stride-plus-one", "batch-offset-dropped"],
    "boundary": [
        "less-to-less-equal",
        "tail-guard-dropped",
        "loop-start-one",
        "init-zero-for-minus-inf",
        "last-tile-skipped",
    ],
    "semantic": ["softmax-without-max", "epsilon-dropped", "relu-dropped", "missing-scale", "biased-variance"],
    "sync": ["barrier-removed", "barrier-to-syncwarp", "fence-removed"],
    "warp": ["full-mask-to-half", "shuffle-delta-halved", "down-to-up"],
    "atomic": ["atomic-to-plain-add", "one-thread-guard-dropped"],
    "async": ["wait-group-one-more"],
    "precision": ["float-accumulator-to-half", "fast-exp", "intermediate-rounded-to-half", "kahan-dropped"],
    "launch": ["grid-minus-one", "shared-bytes-less", "block-size-changed"],
}
CHECKERS = (
    ("kernelbench@1e-2", True, 1e-2, 5, "uniform"),
    ("kernelbench@1e-4", True, 1e-4, 5, "uniform"),
    ("kernelbench-verified", True, 1e-3, 4, "scaled"),
    ("exact-official", False, 1e-6, 5, "uniform"),
    ("truekernel", False, 0.0, 9, "own"),
)
_MISS = {  # by class: share that stays under 1e-2 on uniform inputs
    "arithmetic": 0.08, "index": 0.05, "boundary": 0.23, "semantic": 0.3, "sync": 0.34, "warp": 0.12,
    "atomic": 0.2, "async": 0.4, "precision": 0.8, "launch": 0.1,
}  # fmt: skip
_DIFF = """--- a/{program}.cu
+++ b/{program}.cu
@@ -{line},7 +{line},7 @@
     const int lane = threadIdx.x & 31;
     float total = 0.0f;
     for (int column = threadIdx.x; column < columns; column += blockDim.x) {{
-        total += expf(row[column] - largest);
+        total {change} expf(row[column] - largest);
     }}
     total = block_sum(total, scratch);
     const float inverse = 1.0f / total;
"""


@dataclass
class Made:
    """An invented mutant: `error` is its largest difference on uniform inputs, in units of |o - r| / (1 + |r|)."""

    id: str
    program: str
    problem: str
    rule: str
    rule_class: str
    error: float
    fate: str
    kills: dict[str, list[bool]] = field(default_factory=dict)

    def missed_by(self, checker: str) -> bool:
        return not any(self.kills[checker])


def make_summary(*, per_rule: int = 4, seed: int = 7, broken: bool = False) -> Summary:
    """A summary over `per_rule` mutants of each rule and program, complete in every part; `broken` marks the last checker broken."""
    rng = random.Random(seed)
    programs = _programs()
    made = _mutants(rng, programs, per_rule)
    witnessed = [m for m in made if m.fate == "witnessed"]
    quarantined = [m for m in made if m.fate in ("masked", "unobserved", "identical")]
    fates = {fate: sum(m.fate == fate for m in made) for fate in {m.fate for m in made}}
    unique = sum(fates.get(f, 0) for f in ("witnessed", "masked", "unobserved", "host_differs", "infrastructure"))
    vacuity = _vacuity()
    scores = tuple(
        _score(rng, name, published, tolerance, witnessed, quarantined, vacuity)
        for name, published, tolerance, _, _ in CHECKERS
    )
    if broken:
        last = scores[-1].model_copy(update={"broken": "raised ZeroDivisionError: division by zero"})
        scores = (*scores[:-1], last)
    hazards = tuple(_hazard(rng, m) for m in made if m.rule_class in ("sync", "boundary", "launch"))[:23]
    survivors = tuple(
        sorted(
            (_survivor(rng, m) for m in witnessed if any(m.missed_by(c[0]) for c in CHECKERS)), key=lambda s: s.order
        )
    )
    return Summary(
        tool_version="0.1.0",
        run=RunFacts(
            directory="runs/demo",
            checkers=tuple(c[0] for c in CHECKERS),
            sample=None,
            seed=0,
            compiler="clang 19.1.7",
            machine="2 cores, 8 GiB",
            versions={"python": "3.11.2", "torch": "2.13.0"},
            seconds=163.4,
        ),
        counts=Counts(
            generated=len(made) + 61,
            merged=61,
            chosen=len(made),
            stillborn=fates.get("stillborn", 0),
            identical=fates.get("identical", 0),
            duplicates=fates.get("duplicate", 0),
            unique=unique,
            witnessed=len(witnessed),
            masked=fates.get("masked", 0),
            unobserved=fates.get("unobserved", 0),
            host_differs=fates.get("host_differs", 0),
            infrastructure=0,
            crashes=len(witnessed) // 9,
            timeouts=len(witnessed) // 40,
            hazards=len(hazards),
            executions=len(made) * 31,
            honest_panel=90,
            honest_outer=123,
            honest_independent=31,
            honest_refused=2,
        ),
        programs=tuple(
            ProgramSummary(
                name=name,
                problem=problem,
                family=PROBLEMS[problem],
                traits=("half",) if "half" in name else (),
                gate="" if name != "cumsum_lookback" else "not bit-equal when schedule reverse is repeated",
                mutants=sum(m.program == name for m in made),
                unique=sum(m.program == name and m.fate in ("witnessed", "masked", "unobserved") for m in made),
                witnessed=sum(m.program == name for m in witnessed),
            )
            for name, problem in programs.items()
        ),
        rules=_rules(made),
        rules_known=277,
        checkers=scores,
        curves=_curves(witnessed),
        gain=_gain(witnessed),
        vacuity=vacuity,
        kill_matrix=_kill_matrix(witnessed),
        survivors=survivors,
        quarantined=tuple(
            QuarantinedSummary(
                id=m.id,
                program=m.program,
                problem=m.problem,
                kind=m.fate,
                changes=_changes(rng, m),
                diff=_DIFF.format(program=m.program, line=rng.randrange(10, 60), change="="),
                worst=round(rng.uniform(0.1, 1.9), 3) if m.fate == "masked" else None,
                rejected_by=("exact-official",) if m.fate == "masked" and rng.random() < 0.3 else (),
            )
            for m in quarantined
        ),
        hazards=hazards,
    )


def _programs() -> dict[str, str]:
    names = {f"{problem}_{'shuffle' if i % 2 else 'tiled'}": problem for i, problem in enumerate(PROBLEMS)}
    names |= {"softmax_online": "softmax", "matmul_registers": "matmul", "cumsum_lookback": "cumsum"}
    return names


def _mutants(rng: random.Random, programs: dict[str, str], per_rule: int) -> list[Made]:
    made = []
    fates = ["witnessed", "masked", "unobserved", "identical", "duplicate", "stillborn", "host_differs"]
    for program, problem in programs.items():
        if program == "cumsum_lookback":
            continue
        for rule_class, rules in RULES.items():
            for rule in rules:
                if rng.random() < 0.45:
                    continue
                for _ in range(rng.randrange(per_rule + 1)):
                    fate = rng.choices(fates, [75, 4, 5, 4, 7, 4, 1])[0]
                    share = _MISS[rule_class]
                    quiet = rng.random() < share
                    error = 10 ** (rng.uniform(-7.5, -2.1) if quiet else rng.uniform(-1.9, 2))
                    mutant = Made(f"{rng.getrandbits(64):016x}", program, problem, rule, rule_class, error, fate)
                    mutant.kills = {
                        name: _case_kills(rng, mutant, tolerance, cases, inputs)
                        for name, _, tolerance, cases, inputs in CHECKERS
                    }
                    made.append(mutant)
    return made


def _case_kills(rng: random.Random, mutant: Made, tolerance: float, cases: int, inputs: str) -> list[bool]:
    if inputs == "own":
        return [rng.random() < (0.75 if mutant.error > 1e-6 else 0.5) for _ in range(cases)]
    gain = [1, 3, 0.01, 1][:cases] if inputs == "scaled" else [1] * cases
    return [
        mutant.error * g * rng.uniform(0.9, 1.1) * (4 if inputs == "scaled" and i == 3 else 1) > tolerance
        for i, g in enumerate(gain)
    ]


def _size(m: Made) -> ErrorSize:
    """By the invented error, as if one error scale were 1e-6; one in seven faults or puts out NaN."""
    number = int(m.id, 16) % 14
    if number < 2:
        return ERROR_SIZES[number]
    return "over 100 error scales" if m.error > 1e-4 else "5 to 100" if m.error > 5e-6 else "under 5"


def _rate(mutants: Sequence[Made], hit: Callable[[Made], bool]) -> Rate:
    clusters: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for m in mutants:
        hits, n = clusters[m.problem]
        clusters[m.problem] = (hits + hit(m), n + 1)
    return Rate.over(clusters)


def _groups(
    mutants: Sequence[Made], key: Callable[[Made], str], hit: Callable[[Made], bool], names: Sequence[str]
) -> tuple[GroupRate, ...]:
    members = {name: [m for m in mutants if key(m) == name] for name in names}
    return tuple(GroupRate(name=name, rate=_rate(ms, hit)) for name, ms in members.items() if ms)


def _score(
    rng: random.Random,
    name: str,
    published: bool,
    tolerance: float,
    witnessed: list[Made],
    quarantined: list[Made],
    vacuity: Vacuity,
) -> CheckerScore:
    def missed(m: Made) -> bool:
        return m.missed_by(name)

    vacuous = {e.problem for e in vacuity.entries if e.checker == name and e.size == "audit"}
    misses = _rate(witnessed, missed)
    rejections = 7 if name == "exact-official" else 2 if name == "kernelbench@1e-4" else 0
    outer = dict.fromkeys(PROBLEMS, (0.0, 7.0))
    for problem in list(outer)[:rejections]:
        outer[problem] = (1.0, 7.0)
    uniform = name.startswith(("kernelbench@", "exact"))
    return CheckerScore(
        name=name,
        title=f"{name} (scaled)" if published else name,
        version="423217d" if name.startswith("kernelbench@") else "3fdf6fe" if published else "1",
        source_url="https://github.com/ScalingIntelligence/KernelBench" if published else "",
        inputs="five uniform cases"
        if uniform
        else "four scalings of the official inputs"
        if published
        else "nine cases of its own",
        tolerance=f"|o - r| <= {tolerance:g} + {tolerance:g} |r|"
        if tolerance
        else "per element, from error scale and honest spread",
        published=published,
        miss=misses,
        false_rejection=Rate.over(outer),
        false_rejection_independent=Rate.over(dict.fromkeys(PROBLEMS, (0.0, 2.0))),
        miss_with_quarantined=_rate(witnessed + [m for m in quarantined if m.fate != "identical"], missed),
        miss_without_vacuous=_rate([m for m in witnessed if m.problem not in vacuous], missed),
        false_rejection_without_vacuous=Rate.over(outer),
        miss_by_class=_groups(witnessed, lambda m: m.rule_class, missed, RULE_CLASSES),
        miss_by_rule=_groups(witnessed, lambda m: m.rule, missed, sorted(r for rules in RULES.values() for r in rules)),
        miss_by_family=_groups(witnessed, lambda m: PROBLEMS[m.problem], missed, sorted(set(PROBLEMS.values()))),
        miss_by_problem=_groups(witnessed, lambda m: m.problem, missed, sorted(PROBLEMS)),
        miss_by_size=_groups(witnessed, _size, missed, ERROR_SIZES),
        miss_gross=_rate([m for m in witnessed if _size(m) in GROSS], missed),
        false_rejection_by_problem=tuple(GroupRate(name=p, rate=Rate.over({p: c})) for p, c in sorted(outer.items())),
        caught_by_output=misses.n - misses.hits - misses.n // 9,
        caught_by_crash=misses.n // 9,
        caught_by_timeout=misses.n // 40,
        settling=tuple(
            SettlingPoint(n=n, mean=mean, low=low, high=high)
            for n, mean, low, high in settling([m.missed_by(name) for m in witnessed])
        ),
        seed_blind=_rate([m for m in witnessed if missed(m)], lambda m: m.error < tolerance / 2) if uniform else None,
    )


def _curves(witnessed: list[Made]) -> tuple[ToleranceCurve, ...]:
    def points(boost: float) -> tuple[CurvePoint, ...]:
        steps = [10 ** (-7 + i / 4) for i in range(29)]
        return tuple(
            CurvePoint(
                tolerance=t,
                detection=sum(m.error * boost > t for m in witnessed) / len(witnessed),
                false_rejection=max(0.0, min(1.0, (-5.0 - _log10(t)) * 0.31)),
            )
            for t in steps
        )

    return (
        ToleranceCurve(
            suite="five uniform cases (KernelBench)",
            points=points(1),
            marks=(
                CurveMark(checker="kernelbench@1e-2", tolerance=1e-2),
                CurveMark(checker="kernelbench@1e-4", tolerance=1e-4),
            ),
        ),
        ToleranceCurve(
            suite="four scalings (KernelBench-Verified)",
            points=points(4),
            marks=(CurveMark(checker="kernelbench-verified", tolerance=1e-3),),
        ),
    )


def _log10(value: float) -> float:
    import math

    return math.log10(value)


def _gain(witnessed: list[Made]) -> GainSplit:
    def missed(tolerance: float, boost: float) -> float:
        return sum(m.error * boost <= tolerance for m in witnessed) / len(witnessed)

    base, inputs, tolerance, both = missed(1e-2, 1), missed(1e-2, 4), missed(1e-3, 1), missed(1e-3, 4)
    split = two_factor_split(-base, -inputs, -tolerance, -both)
    return GainSplit(
        base="kernelbench@1e-2", improved="kernelbench-verified", base_miss=base, inputs_miss=inputs, tolerance_miss=tolerance,
        improved_miss=both, inputs_first=split["first"][0], inputs_last=split["first"][1], inputs_mean=split["first"][2],
        tolerance_first=split["second"][0], tolerance_last=split["second"][1], tolerance_mean=split["second"][2], n=len(witnessed),
    )  # fmt: skip


def _vacuity() -> Vacuity:
    def entry(problem: str, checker: str, size: str, trivial: str, margin: float) -> VacuousEntry:
        return VacuousEntry(problem=problem, checker=checker, size=size, trivial=trivial, margin=margin)

    return Vacuity(
        audit_pairs=len(PROBLEMS) * len(CHECKERS),
        official_pairs=len(PROBLEMS) * len(CHECKERS) - 1,
        entries=(
            entry("softmax", "kernelbench@1e-2", "audit", "zeros", 0.00025),
            entry("softmax", "kernelbench@1e-2", "official", "zeros", 0.000254),
            entry("softmax", "kernelbench@1e-4", "official", "zeros", 0.0254),
            entry("softmax", "kernelbench-verified", "audit", "zeros", 0.0031),
            entry("l2_norm", "kernelbench@1e-2", "official", "zeros", 0.68),
            entry("batch_norm", "kernelbench@1e-2", "audit", "another case's output", 0.91),
        ),
        gaps=(
            VacuityGap(problem="attention", checker="truekernel", size="official", why="the reference needs 96 GiB"),
        ),
    )


def _kill_matrix(witnessed: list[Made]) -> KillMatrix:
    columns, deciders = [], []
    for name, _, _, cases, inputs in CHECKERS:
        labels = ["x1", "x3", "x0.01", "x-1"] if inputs == "scaled" else [f"trial {i + 1}" for i in range(cases)]
        for i, label in enumerate(labels):
            columns.append(KillColumn(checker=name, label=label, detail=inputs))
            deciders.append(lambda m, name=name, i=i: m.kills[name][i])
        columns.append(KillColumn(checker=name, label="all"))
        deciders.append(lambda m, name=name: any(m.kills[name]))
    rows = []
    for level, key, names in (
        ("class", lambda m: m.rule_class, RULE_CLASSES),
        ("rule", lambda m: m.rule, [r for rules in RULES.values() for r in rules]),
        ("problem", lambda m: m.problem, sorted(PROBLEMS)),
    ):
        for name in names:
            members = [m for m in witnessed if key(m) == name]
            if members:
                killed = tuple(sum(map(decide, members)) / len(members) for decide in deciders)
                rule_class = members[0].rule_class if level == "rule" else ""
                rows.append(KillRow(level=level, name=name, rule_class=rule_class, n=len(members), killed=killed))
    return KillMatrix(columns=tuple(columns), rows=tuple(rows))


def _rules(made: list[Made]) -> tuple[RuleSummary, ...]:
    rows = []
    for rule_class, names in RULES.items():
        for name in names:
            own = [m.fate for m in made if m.rule == name]
            rows.append(
                RuleSummary(
                    name=name, rule_class=rule_class, description=f"{name.replace('-', ' ')} at every place where it applies",
                    source="Wu et al., ICSE 2020", generated=len(own), stillborn=own.count("stillborn"), identical=own.count("identical"),
                    duplicates=own.count("duplicate"), witnessed=own.count("witnessed"), masked=own.count("masked"),
                    unobserved=own.count("unobserved"),
                    unique=sum(f in ("witnessed", "masked", "unobserved", "host_differs") for f in own),
                )
            )  # fmt: skip
    return tuple(rows)


def _changes(rng: random.Random, m: Made) -> tuple[Change, ...]:
    return (
        Change(rule=m.rule, rule_class=m.rule_class, file="py" if m.rule_class == "launch" else "cu", line=rng.randrange(8, 70),
               column=rng.randrange(1, 60), replacement="-"),
    )  # fmt: skip


def _survivor(rng: random.Random, m: Made) -> SurvivorSummary:
    accepted = tuple(c[0] for c in CHECKERS if m.missed_by(c[0]))
    honest = rng.uniform(0.2, 1.2)
    size = _size(m)
    finite = size not in ERROR_SIZES[:2]
    return SurvivorSummary(
        id=m.id,
        program=m.program,
        problem=m.problem,
        family=PROBLEMS[m.problem],
        changes=_changes(rng, m),
        diff=_DIFF.format(
            program=m.program, line=rng.randrange(10, 60), change="-=" if m.rule_class == "arithmetic" else "="
        ),
        accepted_by=accepted,
        rejected_by={
            c[0]: f"{rng.randrange(1, 900)} elements outside {c[2]:g}" for c in CHECKERS if c[0] not in accepted
        },
        witness=WitnessSummary(
            case_id=f"{rng.getrandbits(64):016x}",
            axes={"batch": 16, "columns": rng.choice([257, 1021, 1])},
            recipe=rng.choice(["normal*30", "heavy_tail", "exact_integers", "normal+1000"]),
            seed=rng.randrange(1000, 9999),
            schedule=rng.choice(["gpu", "reverse", "random"]),
            schedule_seed=1,
            status="out_of_bounds" if size == "fault" else "ok",
            why=f"worst error {m.error * 1e6:.4g} error scales; honest programs stay within {honest:.4g}"
            if finite
            else "3 elements are NaN or infinite where the truth is not, or the reverse",
            worst=m.error * 1e6 if finite else None,
            size=size,
            honest_worst=honest,
            element=WorstElement(
                output="y", index=(rng.randrange(16), rng.randrange(200)), got=0.731 if finite else None, truth=0.25
            ),
        ),
        confirmed=True,
    )


def _hazard(rng: random.Random, m: Made) -> HazardSummary:
    outcome = {"sync": "race", "boundary": "out_of_bounds"}.get(m.rule_class, "uninitialised_read")
    return HazardSummary(
        mutant=m.id, program=m.program, changes=_changes(rng, m), outcome=outcome,
        message={"race": "read of scratch[3] races with a write by thread (35,0,0)"}.get(outcome, "4 bytes past the end of x"),
        schedule="random", thread=(rng.randrange(256), 0, 0), block=(rng.randrange(16), 0, 0), line=rng.randrange(8, 70),
        buffer=rng.choice(["x", "y", "scratch"]), offset=rng.choice([1024, 4096, -4]), witnessed=rng.random() < 0.4,
    )  # fmt: skip
