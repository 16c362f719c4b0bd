"""torch's operators: public functions and methods by namespace, and every overload of the dispatcher that a CPU can run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
import torch.signal.windows

from truekernel.fuzz.records import ArgumentKind, Operator, ParameterSpec

NAMESPACES = (
    "torch",
    "torch.nn.functional",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.signal.windows",
    "torch.Tensor",
)

EXCLUDED = re.compile(
    r"^(save|load|from_file|from_dlpack|to_dlpack|from_numpy|as_tensor|asarray|frombuffer|tensor|compile|cond|while_loop|vmap|fork|wait|autocast.*|.*_autocast.*|"
    r"set_.*|get_.*|use_.*|manual_seed|initial_seed|seed|is_(tensor|storage|grad_enabled|inference_mode_enabled|vulkan_available|anomaly.*|autocast.*|warn.*|deterministic.*)|"
    r"import_ir.*|parse_.*|merge_type.*|unify_type.*|typename|classproperty|compiled_with.*|prepare_multi.*|profiler_.*|sym_.*|init_num_threads|are_deterministic.*|"
    r"thread_safe_generator|eig|lstsq|matrix_rank|solve|symeig|clear_autocast.*|cudnn_.*|miopen_.*|hybrid.*|can_cast|promote_types|cuda|xpu|ipu|hpu|mtia|cpu|share_memory_|"
    r"is_shared|pin_memory|is_pinned|register_.*|storage|untyped_storage|storage_type|record_stream|retain_grad|backward|module_load|numpy|tolist|apply_|map_|map2_|new|"
    r"data_ptr|element_size|has_names|names|rename.*|refine_names|align_.*|unflatten_names|reinforce.*|dim_order|to_mkldnn|to_sparse.*|type|__.*|_.*|"
    r"boolean_dispatch|has_torch_function.*|handle_torch_function|assert_int_or_pair|multi_head_attention_forward|requires_grad_|detach_|parallel_apply|"
    r"grouped_mm|scaled_mm|scaled_grouped_mm|fbgemm_.*|mkldnn_.*|quantized_(gru|lstm)|cudnn_affine.*|register_hook|unsafe_chunk.*|resolve_name|lobpcg|segment_reduce|"
    r"from_.*|is_vulkan.*|autograd.*|(de)?serialize.*|result_type|broadcast_shapes|inspect.*|Callable.*|Optional|overload|sparse_(bsc|bsr|csc|csr|compressed|coo)_tensor)$"
)
"""Functions that read or write files, change global state, take or return no tensors, or need another back end."""

SKIPPED_OVERLOADS = re.compile(
    r"^(_?cudnn|_?mkldnn|miopen|_?mps|mps|_?xpu|_?vulkan|_?fbgemm|_?cufft|_?cslt|_?scaled|_?cuda|_?hpu|mtia|from_file|_linalg_check|_debug|set_|_thnn_fused|_nnpack|"
    r"_pin_memory|pin_memory|is_pinned|record_stream|rename|align_|refine_names|_test|sym_|_assert|_functional|_foobar|_foreach|_fused|_amp|_make_dep|_nested|_sparse|"
    r"_to_sparse|_to_cpu|_jagged|_padded|_flash|_efficient|_fake_quant|_triton|_transformer|_native_multi|_unsafe|_use_|_validate|_version|_weight_int|_wrapped|_cast|"
    r"backward|data|retain|requires_grad_|_backward|_fw_|_has_|_enable|_lazy|_remove|_shape_as|_local_scalar|quantize|dequantize|q_|fake_quant|int_repr|fused_moving|"
    r"sparse_|to_sparse|to_mkldnn|to_dense|crow_|col_ind|ccol_|row_ind|values|indices|coalesce|is_coalesced|_coalesce|_indices|_values|_nnz|_dim|dense_dim|sparse_dim|"
    r"copy_sparse|hspmm|sspaddmm|resize_as_sparse|qscheme|_choose|choose_q|_make_per|_resize_output|_empty_affine|_empty_per|_nest|narrow_copy_dense|__|item|Int|Float|"
    r"Bool|Complex|Scalar|eq\.str|str|len|list|copy\.|add\.str|format|ord|chr|isupper|islower|capitalize|upper|lower|.*_list|keys|dict|sorted|sort\.(int|float|bool|str|any)|"
    r"warn|device|percentFormat|strip|split\.str|splitlines|find|join|manual_seed|_set_|grad|is_autocast|is_scripting|hash|bin|hex|oct|insert|append|pop|extend|clear|"
    r"remove|reverse|index\.list|wait|save|get\.|setdefault|update|popitem|has_torch|mathremainder|degrees|radians|divmod|floordiv|intdiv)"
)

_KINDS: dict[str, ArgumentKind] = {
    "Tensor": "tensor", "List[Tensor]": "tensors", "List[Optional[Tensor]]": "tensors", "int": "integer", "List[int]": "integers", "float": "real", "number": "real",
    "bool": "boolean", "str": "text",
}  # fmt: skip

FAMILY_PATTERNS: tuple[tuple[str, str], ...] = (
    ("backward", r"backward"),
    ("convolution", r"conv|unfold|fold|im2col|col2im"),
    ("pooling", r"pool"),
    ("normalisation", r"norm$|normalize|batch_norm|layer_norm|renorm|local_response"),
    ("attention", r"attention|multi_head|embedding|rope"),
    ("recurrent", r"gru|lstm|rnn"),
    ("loss", r"loss|cross_entropy|kl_div|cosine_similarity|pairwise_distance"),
    ("resampling", r"interpolate|upsample|grid_sample|affine_grid|pixel_|pad"),
    ("activation", r"relu|elu|gelu|glu|softmax|softmin|sigmoid|tanh|softplus|softshrink|hardshrink|threshold|mish|silu|softsign|dropout|hardtanh|hardswish|logit"),
    ("fourier", r"fft|stft|window|bartlett|blackman|hamming|hann|kaiser"),
    ("linear algebra", r"linalg|mm$|mv$|bmm|matmul|dot|addr|addmm|addbmm|baddbmm|svd|qr|eig|chol|lu_|lu$|inv|det|solve|pinverse|matrix|ormqr|geqrf|orgqr|outer|ger|"
                       r"kron|cross|cdist|dist|tensordot|einsum|bilinear|linear|triangular|trace|householder|chain|corrcoef|cov"),
    ("special functions", r"special|gamma|bessel|erf|polynomial|zeta|i0|igamma|airy|ndtr|entr|sinc|beta"),
    ("random", r"rand|normal|bernoulli|multinomial|poisson|exponential|geometric|cauchy|binomial|uniform|random|shuffle|dirichlet"),
    ("scan and sort", r"cum|sort|topk|kthvalue|median|quantile|unique|msort|histogram|histc|bincount|searchsorted|bucketize|mode|trapz|trapezoid|diff"),
    ("indexing", r"index|gather|scatter|take|put|masked|where|select|slice|nonzero|argwhere|one_hot|isin|combinations|cartesian"),
    ("reduction", r"sum|mean|prod|amax|amin|aminmax|argmax|argmin|var|std|logsumexp|all$|any$|count|max$|min$|norm"),
    ("shape", r"view|reshape|permute|transpose|squeeze|expand|flip|roll|rot90|cat|stack|split|chunk|tile|repeat|movedim|moveaxis|swap|narrow|unbind|diag|tri[ul]|broadcast|"
              r"flatten|ravel|stride|concat|block_diag|meshgrid|atleast|resize|as_strided|t_$|adjoint|unflatten|unsafe"),
    ("creation", r"empty|zeros|ones|full|arange|linspace|logspace|range|eye|complex|polar|vander|new_|clone|copy|to$|scalar_tensor|fill"),
    ("bitwise and comparison", r"bitwise|logical|^(eq|ne|lt|gt|le|ge|equal|greater|less|not_equal|isclose|allclose|is)|shift|gcd|lcm|and|or_|xor|maximum|minimum|fmax|fmin"),
    ("quantised", r"quant|q_"),
)  # fmt: skip
FAMILIES = (*(name for name, _ in FAMILY_PATTERNS), "elementwise")

TRAITS = (
    "method", "dispatcher", "documented", "in_place", "out", "view", "random", "tensors", "integers", "reals", "texts", "lists", "optional", "returns", "composite",
)  # fmt: skip
FEATURE_NAMES = (*(f"family {name}" for name in FAMILIES), *TRAITS)


def base_name(name: str) -> str:
    """`conv2d` for `torch.nn.functional.conv2d` and for `torch.ops.aten.conv2d.padding`."""
    if name.startswith("torch.ops."):
        return name.split(".")[3]
    return name.rsplit(".", 1)[1]


def family(name: str) -> str:
    """The family of an operator, by its name."""
    base = base_name(name)
    if name.startswith("torch.special."):
        return "special functions"
    if name.startswith("torch.linalg."):
        return "linear algebra"
    if name.startswith(("torch.fft.", "torch.signal.")):
        return "fourier"
    return next((group for group, pattern in FAMILY_PATTERNS if re.search(pattern, base)), "elementwise")


@cache
def resolve(name: str) -> Any:
    """The callable of that dotted name. Raises AttributeError where this version has none."""
    root, *path = name.split(".")
    found: Any = torch if root == "torch" else None
    for part in path:
        found = getattr(found, part)
    if found is None:
        raise AttributeError(name)
    return found


def operators() -> list[Operator]:
    """All operators, public ones first, each namespace in alphabetical order."""
    return [*_public(), *_overloads()]


def _public() -> Iterator[Operator]:
    for namespace in NAMESPACES:
        module = torch if namespace == "torch" else resolve(namespace)
        for name in sorted(dir(module)):
            target = getattr(module, name, None)
            if (
                name.startswith("_")
                or EXCLUDED.match(name)
                or not callable(target)
                or inspect.isclass(target)
                or inspect.ismodule(target)
            ):
                continue
            if namespace == "torch.nn.functional" and getattr(torch, name, None) is target:
                continue
            yield _operator(f"{namespace}.{name}", documented=bool(inspect.getdoc(target)))


def _overloads() -> Iterator[Operator]:
    for schema in sorted(torch._C._jit_get_all_schemas(), key=lambda s: (s.name, s.overload_name)):
        if not schema.name.startswith("aten::"):
            continue
        name = schema.name.removeprefix("aten::")
        overload = schema.overload_name or "default"
        if SKIPPED_OVERLOADS.match(f"{name}.{overload}") or not any(
            "Tensor" in str(part.type) for part in (*schema.arguments, *schema.returns)
        ):
            continue
        if not any(_has_kernel(f"torch.ops.aten.{name}.{overload}", key) for key in CPU_KEYS):
            continue
        yield _operator(f"torch.ops.aten.{name}.{overload}", public=False, documented=False)


CPU_KEYS = ("CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")


def _has_kernel(name: str, key: str) -> bool:
    """Whether an overload of the dispatcher has a kernel for a key; False for those that only TorchScript knows."""
    *_, packet, overload = name.split(".")
    full = f"aten::{packet}" if overload == "default" else f"aten::{packet}.{overload}"
    try:
        return torch._C._dispatch_has_kernel_for_dispatch_key(full, key)
    except RuntimeError:
        return False


def _operator(name: str, *, public: bool = True, documented: bool = True) -> Operator:
    schema = _schema(name)
    parameters = _parameters(schema) if schema is not None else _from_signature(name)
    group = family(name)
    backward = "backward" in base_name(name)
    return Operator(
        name,
        group,
        parameters,
        "" if schema is None else str(schema),
        public=public,
        documented=documented,
        backward=backward,
        features=_features(name, group, parameters, schema, documented),
    )


@cache
def _schema(name: str) -> Any | None:
    """The schema of an overload, or of the first overload of that name for a public function."""
    if name.startswith("torch.ops."):
        return resolve(name)._schema
    base = base_name(name)
    prefix = {"torch.linalg": "linalg_", "torch.fft": "fft_", "torch.special": "special_"}.get(
        name.rsplit(".", 1)[0], ""
    )
    found = torch._C._jit_get_schemas_for_operator(f"aten::{prefix}{base}")
    tensors = [
        schema for schema in found if any("Tensor" in str(part.type) for part in (*schema.arguments, *schema.returns))
    ]
    return tensors[0] if tensors else None


def _parameters(schema: Any) -> tuple[ParameterSpec, ...]:
    found = []
    for argument in schema.arguments:
        text = str(argument.type)
        inner = re.sub(r"^Optional\[(.*)\]$", r"\1", text)
        kind = _KINDS.get(inner, "other")
        if kind == "integer" and argument.name == "dtype":
            kind = "dtype"
        found.append(
            ParameterSpec(
                argument.name,
                kind,
                optional=text.startswith("Optional") or argument.has_default_value(),
                keyword=argument.kwarg_only,
            )
        )
    return tuple(found)


def _from_signature(name: str) -> tuple[ParameterSpec, ...]:
    """Parameters of a Python function from its annotations; nothing where it has no signature of its own."""
    try:
        signature = inspect.signature(resolve(name))
    except (ValueError, TypeError, AttributeError):
        return ()
    found = []
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        text = str(parameter.annotation).replace("typing.", "").replace("torch.", "")
        kind: ArgumentKind = "other"
        for word, candidate in (
            ("list[Tensor", "tensors"),
            ("Tensor", "tensor"),
            ("ist[int", "integers"),
            ("int", "integer"),
            ("float", "real"),
            ("bool", "boolean"),
            ("str", "text"),
        ):
            if word in text:
                kind = candidate  # type: ignore[assignment]
                break
        found.append(
            ParameterSpec(
                parameter.name,
                kind,
                optional=parameter.default is not parameter.empty,
                keyword=parameter.kind is parameter.KEYWORD_ONLY,
            )
        )
    return tuple(found)


def _features(
    name: str, group: str, parameters: tuple[ParameterSpec, ...], schema: Any | None, documented: bool
) -> tuple[float, ...]:
    kinds = [parameter.kind for parameter in parameters]
    target = resolve(name)
    tags = getattr(target, "tags", ())
    traits = {
        "method": name.startswith("torch.Tensor."),
        "dispatcher": name.startswith("torch.ops."),
        "documented": documented,
        "in_place": base_name(name).endswith("_"),
        "out": bool(schema and any(part.is_out for part in schema.arguments)),
        "view": bool(getattr(target, "is_view", False)),
        "random": torch.Tag.nondeterministic_seeded in tags or group == "random",
        "tensors": min(kinds.count("tensor"), 8) / 8,
        "integers": min(kinds.count("integer"), 8) / 8,
        "reals": min(kinds.count("real"), 4) / 4,
        "texts": min(kinds.count("text"), 2) / 2,
        "lists": min(kinds.count("integers") + kinds.count("tensors"), 4) / 4,
        "optional": sum(parameter.optional for parameter in parameters) / max(len(parameters), 1),
        "returns": min(len(schema.returns), 4) / 4 if schema else 0.25,
        "composite": name.startswith("torch.ops.") and _has_kernel(name, "CompositeImplicitAutograd"),
    }
    return (*(float(group == one) for one in FAMILIES), *(float(traits[one]) for one in TRAITS))
