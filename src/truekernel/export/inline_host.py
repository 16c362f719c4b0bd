"""Host side of an exported file as C++ for `torch.utils.cpp_extension.load_inline`: what a model's candidate usually looks like."""

from __future__ import annotations

from typing import Any

_TYPES = {
    "float32": "torch::kFloat32",
    "float16": "torch::kFloat16",
    "bfloat16": "torch::kBFloat16",
    "float64": "torch::kFloat64",
    "int32": "torch::kInt32",
    "int64": "torch::kInt64",
    "uint8": "torch::kUInt8",
}
DECLARATION = "std::vector<torch::Tensor> tk_forward(std::vector<torch::Tensor> given);"
_HEAD = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <vector>
"""
_LARGEST_PLAIN_SHARED = 48 * 1024


def cuda_source(source: str, plan: dict[str, Any]) -> str:
    """The kernels, then a host function that does what the plan (see `plan_data`) says."""
    lines = [f"std::vector<torch::Tensor> {DECLARATION.split(' ', 1)[1].rstrip(';')} {{"]
    lines += ["  std::vector<torch::Tensor> t;"]
    number = 0
    for init, shape, dtype in plan["buffers"]:
        if init == "input":
            count = 1
            for length in shape:
                count *= length
            lines.append(f"  t.push_back(given.at({number}).to({_TYPES[dtype]}).contiguous());")
            lines.append(f'  TORCH_CHECK(t.back().numel() == {count}LL, "exported for another size");')
            number += 1
        else:
            sizes = ", ".join(f"{length}LL" for length in shape)
            options = f"torch::TensorOptions().dtype({_TYPES[dtype]}).device(torch::kCUDA)"
            lines.append(f"  t.push_back(torch::{init}({{{sizes}}}, {options}));")
    streams = sorted({launch["stream"] for launch in plan["launches"]} - {0})
    lines += [
        f"  static cudaStream_t s{k} = [] {{ cudaStream_t s; C10_CUDA_CHECK(cudaStreamCreate(&s)); return s; }}();"
        for k in streams
    ]
    lines += ["  cudaStream_t s0 = at::cuda::getCurrentCUDAStream();", "  (void)s0;"]
    for launch in plan["launches"]:
        lines += _launch(launch)
    outputs = ", ".join(f"t[{k}]" for k in plan["outputs"])
    lines += [f"  return {{{outputs}}};", "}"]
    return f"{_HEAD}\n{source}\n\n" + "\n".join(lines) + "\n"


def _launch(launch: dict[str, Any]) -> list[str]:
    kernel = f"reinterpret_cast<const void*>(&{launch['kernel']})"
    lines = ["  {"]
    names = []
    for k, arg in enumerate(launch["args"]):
        if isinstance(arg, bytes):
            values = ", ".join(str(byte) for byte in arg)
            lines.append(f"    alignas(16) unsigned char a{k}[] = {{{values}}};")
            names.append(f"a{k}")
        else:
            buffer, offset = arg
            lines.append(f"    void* a{k} = static_cast<char*>(t[{buffer}].data_ptr()) + {offset}LL;")
            names.append(f"&a{k}")
    lines.append(f"    void* args[] = {{{', '.join(names) or 'nullptr'}}};")
    if launch["shared"] > _LARGEST_PLAIN_SHARED:
        attribute = "cudaFuncAttributeMaxDynamicSharedMemorySize"
        lines.append(f"    C10_CUDA_CHECK(cudaFuncSetAttribute({kernel}, {attribute}, {launch['shared']}));")
    call = "cudaLaunchCooperativeKernel" if launch["cooperative"] else "cudaLaunchKernel"
    grid, block = (", ".join(f"{n}u" for n in launch[side]) for side in ("grid", "block"))
    lines.append(
        f"    C10_CUDA_CHECK({call}({kernel}, dim3({grid}), dim3({block}), args, {launch['shared']}, s{launch['stream']}));"
    )
    return [*lines, "  }"]
