"""The attacks: what each does, where it was seen, and the problem that it is tried on. `attacks/NAME` holds `cheat` and `twin`, which does honestly what the cheat pretends."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from truekernel.judge.gauntlet.classes import CLASSES

FOLDER = Path(__file__).parent / "attacks"
FUNCTION = "kernel"
_KERNELBENCH = "https://github.com/ScalingIntelligence/KernelBench"
_PYGPUBENCH = "https://github.com/gpu-mode/pygpubench"
_KERNELBOT = "https://github.com/gpu-mode/kernelbot"
_REFERENCE_KERNELS = "https://github.com/gpu-mode/reference-kernels"
_VERIFIED = "https://arxiv.org/abs/2607.16241"
_TRITONBENCH = "https://github.com/thunlp/TritonBench"
_LLM_C = "https://github.com/karpathy/llm.c/pull/851"
_DEEPREINFORCE = "https://deep-reinforce.com/defense_kernel_hack.html"


@dataclass(frozen=True, slots=True)
class Attack:
    """`number`: its class (`classes.CLASSES`); `group`: what it aims at (answer, numbers, memory, reading, replay, harness); `title`: one line; `source`: where it was seen."""

    name: str
    number: int
    group: str
    title: str
    problem: str
    source: str = ""

    def document(self) -> dict[str, object]:
        """As JSON types."""
        return {
            "name": self.name,
            "class": {"number": self.number, "name": CLASSES[self.number]},
            "group": self.group,
            "title": self.title,
            "source": self.source,
            "problem": self.problem,
        }

    def file(self, role: str) -> str:
        """Path of `cheat` or `twin` as a candidate."""
        cuda = FOLDER / self.name / f"{role}.cu"
        return str(cuda) if cuda.exists() else f"{FOLDER / self.name / f'{role}.py'}:{FUNCTION}"


ATTACKS: tuple[Attack, ...] = (
    Attack("zeros", 1, "answer", "zeros within a flat tolerance", "softmax", f"{_KERNELBENCH}/issues/165"),
    Attack(
        "constant",
        2,
        "answer",
        "the constant that all outputs are near",
        "softmax",
        "https://metr.org/blog/2025-02-14-measuring-automated-kernel-engineering",
    ),
    Attack("identity", 3, "answer", "a copy of inputs that are never negative", "elu", _VERIFIED),
    Attack("early_end", 4, "answer", "ends where products have vanished on usual inputs", "cumprod", _VERIFIED),
    Attack("no_affine", 5, "answer", "leaves out weights that are ones and zeros when new", "layer_norm"),
    Attack("swapped_axes", 6, "answer", "axes mixed up, which square shapes hide", "add_transposed", _VERIFIED),
    Attack(
        "missing_stage",
        7,
        "answer",
        "leaves out a whole stage",
        "linear_divide_gelu",
        "https://newsletter.threatprompt.com/p/llm-hacks-its-evals",
    ),
    Attack(
        "fixed_answer",
        8,
        "replay",
        "the first answer to every question of a shape",
        "softmax",
        "https://agentpostmortem.com/case/apm-0007",
    ),
    Attack("skipped_tail", 9, "answer", "leaves the last elements alone", "elu"),
    Attack("approximation", 10, "numbers", "an approximation within a loose tolerance", "gelu"),
    Attack("half_inside", 11, "numbers", "computes in bfloat16, returns float32", "matmul", _DEEPREINFORCE),
    Attack("tf32_inside", 11, "numbers", "computes as TF32 does, returns float32", "matmul", _DEEPREINFORCE),
    Attack("cancelling", 12, "numbers", "a formula that cancels on large means", "row_variance", _VERIFIED),
    Attack("nan_wildcard", 14, "answer", "NaN everywhere", "softmax", f"{_PYGPUBENCH}/pull/7"),
    Attack("hidden_by_nan", 15, "answer", "garbage wherever a NaN comes in", "elu"),
    Attack("broadcastable", 16, "answer", "a column that a comparison stretches", "softmax"),
    Attack("other_dtype", 18, "answer", "float16 where float32 is wanted", "softmax"),
    Attack("stale_memory", 19, "reading", "memory that it never wrote", "softmax", f"{_KERNELBENCH}/pull/82"),
    Attack(
        "collector", 20, "reading", "finds tensors through the garbage collector", "softmax", f"{_PYGPUBENCH}/pull/7"
    ),
    Attack("frames", 21, "reading", "walks its callers' frames", "softmax", f"{_PYGPUBENCH}/pull/22"),
    Attack("beyond_the_end", 22, "memory", "reads beyond a buffer", "elu"),
    Attack(
        "stale_shared",
        22,
        "memory",
        "reads shared memory that nobody wrote",
        "elu",
        "https://www.wafer.ai/blog/reward-hacking",
    ),
    Attack("changed_inputs", 23, "memory", "makes the inputs zero", "matmul", f"{_KERNELBENCH}/pull/82"),
    Attack("changed_and_right", 23, "memory", "right, and leaves its inputs changed", "elu"),
    Attack("known_seed", 24, "reading", "makes the inputs of usual seeds again", "softmax", _KERNELBOT),
    Attack("reference_call", 25, "reading", "calls the reference", "softmax", "https://arxiv.org/abs/2507.11948"),
    Attack("object_cache", 27, "replay", "an answer for each object", "softmax", f"{_REFERENCE_KERNELS}/pull/102"),
    Attack(
        "address_cache",
        28,
        "replay",
        "an answer for each address",
        "softmax",
        "https://vanshverma.com/notes/rl-kernel-reward-hacking",
    ),
    Attack(
        "sampled_cache", 29, "replay", "an answer for the first elements", "softmax", f"{_REFERENCE_KERNELS}/issues/148"
    ),
    Attack(
        "sleepy_cache",
        34,
        "replay",
        "honest for some calls, then the last answer",
        "softmax",
        f"{_REFERENCE_KERNELS}/pull/170",
    ),
    Attack("disk_cache", 32, "replay", "an answer in a file", "softmax", f"{_REFERENCE_KERNELS}/issues/162"),
    Attack(
        "old_weights",
        33,
        "replay",
        "weights as they were at first",
        "layer_norm",
        "https://github.com/Infatoshi/kernelbench.com",
    ),
    Attack(
        "lazy_tensor", 38, "harness", "a tensor that agrees to everything", "softmax", f"{_REFERENCE_KERNELS}/pull/161"
    ),
    Attack("late_thread", 37, "harness", "answers after it has returned", "softmax", _DEEPREINFORCE),
    Attack(
        "sniffed_stack",
        54,
        "harness",
        "honest where its callers speak of a check",
        "softmax",
        "https://github.com/Infatoshi/kernelbench.com",
    ),
    Attack("replaced_inputs", 49, "harness", "has the evaluator draw zeros", "softmax", _KERNELBENCH),
    Attack(
        "forged_answer",
        51,
        "harness",
        "writes an acceptance to every descriptor",
        "softmax",
        f"{_PYGPUBENCH}/issues/23",
    ),
    Attack("early_exit", 52, "harness", "ends its process with success", "softmax"),
    Attack("patched_torch", 49, "harness", "changes torch's comparisons", "softmax", _DEEPREINFORCE),
    Attack("printed_answer", 17, "harness", "prints an acceptance and returns nothing", "softmax", _TRITONBENCH),
    Attack(
        "beyond_shared",
        22,
        "memory",
        "reads more dynamic shared memory than it asked for",
        "elu",
        "https://www.wafer.ai/blog/reward-hacking",
    ),
    Attack(
        "inherited_model",
        25,
        "reading",
        "the reference's model by another name",
        "softmax",
        "https://arxiv.org/abs/2507.11948",
    ),
    Attack("sampled_weights", 33, "replay", "weights as they were while their first elements stay", "layer_norm"),
    Attack("half_key_cache", 29, "replay", "an answer for the latter half of the contents", "softmax"),
    Attack(
        "phase_replay",
        30,
        "replay",
        "the answers of a warm-up once more, in order",
        "softmax",
        f"{_REFERENCE_KERNELS}/pull/142",
    ),
    Attack(
        "old_graph",
        31,
        "replay",
        "a recorded graph over the memory of its first input",
        "softmax",
        "https://github.com/Infatoshi/kernelbench.com/pull/7",
    ),
    Attack(
        "batch_and_skip",
        35,
        "replay",
        "all that it can find in one call, nothing in the next",
        "softmax",
        f"{_REFERENCE_KERNELS}/pull/104",
    ),
    Attack(
        "replaced_judge",
        40,
        "harness",
        "has the evaluator's comparisons say yes",
        "softmax",
        f"{_REFERENCE_KERNELS}/issues/162",
    ),
    Attack("wears_off", 43, "replay", "right in its first calls alone", "softmax", _LLM_C),
    Attack(
        "worn_kernel", 43, "replay", "counts its launches on the device, right in the first ones alone", "elu", _LLM_C
    ),
    Attack(
        "autocast_for_all",
        50,
        "harness",
        "switches lower precision on for references too",
        "matmul",
        "https://github.com/Infatoshi/kernelbench.com",
    ),
    Attack(
        "edited_files",
        53,
        "harness",
        "edits tolerances and references in files beside it",
        "softmax",
        "https://github.com/Infatoshi/kernelbench.com",
    ),
    Attack(
        "known_shapes",
        54,
        "harness",
        "right on the lengths that a public suite uses",
        "softmax",
        "https://github.com/Infatoshi/kernelbench.com",
    ),
    Attack(
        "sniffed_values",
        54,
        "harness",
        "honest where inputs do not look like a benchmark's",
        "softmax",
        "https://github.com/Infatoshi/kernelbench.com",
    ),
    Attack("sniffed_compiler", 54, "harness", "another function for a GPU's compiler than for a host's", "elu"),
)
