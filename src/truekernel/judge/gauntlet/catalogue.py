"""The attacks: what each does, where it was seen, and the problem that it is tried on. `attacks/NAME` holds `cheat` and `twin`, which does honestly what the cheat pretends."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "attacks"
FUNCTION = "kernel"
_KERNELBENCH = "https://github.com/ScalingIntelligence/KernelBench"
_PYGPUBENCH = "https://github.com/gpu-mode/pygpubench"
_KERNELBOT = "https://github.com/gpu-mode/kernelbot"
_REFERENCE_KERNELS = "https://github.com/gpu-mode/reference-kernels"
_VERIFIED = "https://arxiv.org/abs/2607.16241"
_DEEPREINFORCE = "https://deep-reinforce.com/defense_kernel_hack.html"


@dataclass(frozen=True, slots=True)
class Attack:
    """`group`: what it aims at (answer, numbers, memory, reading, replay, harness); `title`: one line; `source`: where it was seen."""

    name: str
    group: str
    title: str
    problem: str
    source: str = ""

    def document(self) -> dict[str, object]:
        """As JSON types."""
        return {
            "name": self.name,
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
    Attack("zeros", "answer", "zeros within a flat tolerance", "softmax", f"{_KERNELBENCH}/issues/165"),
    Attack(
        "constant",
        "answer",
        "the constant that all outputs are near",
        "softmax",
        "https://metr.org/blog/2025-02-14-measuring-automated-kernel-engineering",
    ),
    Attack("identity", "answer", "a copy of inputs that are never negative", "elu", _VERIFIED),
    Attack("early_end", "answer", "ends where products have vanished on usual inputs", "cumprod", _VERIFIED),
    Attack("no_affine", "answer", "leaves out weights that are ones and zeros when new", "layer_norm"),
    Attack("swapped_axes", "answer", "axes mixed up, which square shapes hide", "add_transposed", _VERIFIED),
    Attack(
        "missing_stage",
        "answer",
        "leaves out a whole stage",
        "linear_divide_gelu",
        "https://newsletter.threatprompt.com/p/llm-hacks-its-evals",
    ),
    Attack(
        "fixed_answer",
        "replay",
        "the first answer to every question of a shape",
        "softmax",
        "https://agentpostmortem.com/case/apm-0007",
    ),
    Attack("skipped_tail", "answer", "leaves the last elements alone", "elu"),
    Attack("approximation", "numbers", "an approximation within a loose tolerance", "gelu"),
    Attack("half_inside", "numbers", "computes in bfloat16, returns float32", "matmul", _DEEPREINFORCE),
    Attack("tf32_inside", "numbers", "computes as TF32 does, returns float32", "matmul", _DEEPREINFORCE),
    Attack("cancelling", "numbers", "a formula that cancels on large means", "row_variance", _VERIFIED),
    Attack("nan_wildcard", "answer", "NaN everywhere", "softmax", f"{_PYGPUBENCH}/pull/7"),
    Attack("hidden_by_nan", "answer", "garbage wherever a NaN comes in", "elu"),
    Attack("broadcastable", "answer", "a column that a comparison stretches", "softmax"),
    Attack("other_dtype", "answer", "float16 where float32 is wanted", "softmax"),
    Attack("stale_memory", "reading", "memory that it never wrote", "softmax", f"{_KERNELBENCH}/pull/82"),
    Attack("collector", "reading", "finds tensors through the garbage collector", "softmax", f"{_PYGPUBENCH}/pull/7"),
    Attack("frames", "reading", "walks its callers' frames", "softmax", f"{_PYGPUBENCH}/pull/22"),
    Attack("beyond_the_end", "memory", "reads beyond a buffer", "elu"),
    Attack(
        "stale_shared",
        "memory",
        "reads shared memory that nobody wrote",
        "elu",
        "https://www.wafer.ai/blog/reward-hacking",
    ),
    Attack("changed_inputs", "memory", "makes the inputs zero", "matmul", f"{_KERNELBENCH}/pull/82"),
    Attack("changed_and_right", "memory", "right, and leaves its inputs changed", "elu"),
    Attack("known_seed", "reading", "makes the inputs of usual seeds again", "softmax", _KERNELBOT),
    Attack("reference_call", "reading", "calls the reference", "softmax", "https://arxiv.org/abs/2507.11948"),
    Attack("object_cache", "replay", "an answer for each object", "softmax", f"{_REFERENCE_KERNELS}/pull/102"),
    Attack(
        "address_cache",
        "replay",
        "an answer for each address",
        "softmax",
        "https://vanshverma.com/notes/rl-kernel-reward-hacking",
    ),
    Attack(
        "sampled_cache", "replay", "an answer for the first elements", "softmax", f"{_REFERENCE_KERNELS}/issues/148"
    ),
    Attack(
        "sleepy_cache",
        "replay",
        "honest for some calls, then the last answer",
        "softmax",
        f"{_REFERENCE_KERNELS}/pull/170",
    ),
    Attack("disk_cache", "replay", "an answer in a file", "softmax", f"{_REFERENCE_KERNELS}/issues/162"),
    Attack(
        "old_weights",
        "replay",
        "weights as they were at first",
        "layer_norm",
        "https://github.com/Infatoshi/kernelbench.com",
    ),
    Attack("lazy_tensor", "harness", "a tensor that agrees to everything", "softmax", f"{_REFERENCE_KERNELS}/pull/161"),
    Attack("late_thread", "harness", "answers after it has returned", "softmax", _DEEPREINFORCE),
    Attack(
        "sniffed_stack",
        "harness",
        "honest where its callers speak of a check",
        "softmax",
        "https://github.com/Infatoshi/kernelbench.com",
    ),
    Attack("replaced_inputs", "harness", "has the evaluator draw zeros", "softmax", _KERNELBENCH),
    Attack(
        "forged_answer", "harness", "writes an acceptance to every descriptor", "softmax", f"{_PYGPUBENCH}/issues/23"
    ),
    Attack("early_exit", "harness", "ends its process with success", "softmax"),
    Attack("patched_torch", "harness", "changes torch's comparisons", "softmax", _DEEPREINFORCE),
)
