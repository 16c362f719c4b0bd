# mypy: ignore-errors
"""Host side of an exported file: compiles with NVRTC and launches through the driver, with ctypes and PyTorch alone.

This text becomes part of the file. Its names share a namespace with an evaluator's, so they start with _tk or _Tk, and nothing of the package that wrote it is imported.
"""

import ctypes
import os
import sys
from pathlib import Path

import torch


class _TkKernelError(RuntimeError):
    """The kernel does not compile, or does not run."""


def _tk_load(names, folders):
    """The first shared library that loads, newest version first."""
    found = [str(path) for folder in folders for name in names for path in sorted(folder.glob(name), reverse=True)]
    for path in (*found, *(name.rstrip("*") for name in names)):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise RuntimeError(f"none of {', '.join(names)} can be loaded: install CUDA, or the wheel nvidia-cuda-nvrtc")


def _tk_roots():
    """Where CUDA may be: the toolkit's folders, then those of its wheels."""
    roots = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for entry in dict.fromkeys([*sys.path, str(Path(torch.__file__).parents[1])]):
        if entry:
            wheels = Path(entry) / "nvidia"
            roots += sorted(wheels.glob("cu1[0-9]"), reverse=True)
            roots += [wheels / part for part in ("cuda_nvrtc", "cuda_runtime", "cuda_cccl")]
    roots += [Path("/usr/local/cuda"), *sorted(Path("/usr/local").glob("cuda-*"), reverse=True)]
    return [root for root in roots if root.is_dir()]


def _tk_includes(major):
    """Folders of CUDA's headers; of several versions the one that fits the compiler."""
    folders = [root / "include" for root in _tk_roots() if (root / "include" / "cuda_fp16.h").is_file()]

    def other_version(folder):
        try:
            text = (folder / "cuda.h").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return True
        return f"#define CUDA_VERSION {major}0" not in text

    chosen = sorted(folders, key=lambda folder: (other_version(folder), not (folder / "crt" / "mma.h").is_file()))[:1]
    extra = [root / "include" for root in _tk_roots() if root.name == "cuda_cccl"]
    return [*chosen, *(folder / "cccl" for folder in chosen), *extra]


def _tk_compile(source, expressions, headers, fma, arch):
    """Machine code for `arch` ("sm_90") and the mangled name of each kernel. Raises RuntimeError with the compiler's log."""
    folders = [root / sub for root in _tk_roots() for sub in ("lib", "lib64")]
    library = _tk_load(["libnvrtc.so.1[0-9]", "libnvrtc.so*"], folders)

    def call(name, *args):
        status = getattr(library, name)(*args)
        if status:
            text = library.nvrtcGetErrorString
            text.restype = ctypes.c_char_p
            raise _TkKernelError(f"{name}: {text(status).decode()}{log()}")

    program = ctypes.c_void_p()

    def log():
        size = ctypes.c_size_t()
        if not program or library.nvrtcGetProgramLogSize(program, ctypes.byref(size)):
            return ""
        text = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, text)
        return "\n" + text.value.decode(errors="replace")

    major, minor = ctypes.c_int(), ctypes.c_int()
    call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
    texts = (ctypes.c_char_p * len(headers))(*(text.encode() for text in headers.values()))
    names = (ctypes.c_char_p * len(headers))(*(name.encode() for name in headers))
    call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), b"kernel.cu", len(headers), texts, names)
    for expression in expressions:
        call("nvrtcAddNameExpression", program, expression.encode())
    options = [f"--gpu-architecture={arch}", "--std=c++17", f"--fmad={'true' if fma else 'false'}"]
    options += [f"--pre-include={name}" for name in headers if name.endswith("prelude.h")]
    options += [f"--include-path={folder}" for folder in _tk_includes(major.value)]
    call("nvrtcCompileProgram", program, len(options), (ctypes.c_char_p * len(options))(*(o.encode() for o in options)))
    lowered = {}
    for expression in expressions:
        name = ctypes.c_char_p()
        call("nvrtcGetLoweredName", program, expression.encode(), ctypes.byref(name))
        lowered[expression] = name.value
    size = ctypes.c_size_t()
    call("nvrtcGetCUBINSize", program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    call("nvrtcGetCUBIN", program, cubin)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin.raw, lowered


class _TkKernels:
    """The kernels of one source, compiled for the current device when made; `run` does what a launch plan says."""

    def __init__(self, source, plan, headers, fma):
        self.plan = plan
        self.driver = _tk_load(["libcuda.so.1", "libcuda.so"], [])
        torch.empty(1, device="cuda")  # makes PyTorch's context the current one
        expressions = list(dict.fromkeys(launch["kernel"] for launch in plan["launches"]))
        arch = "sm_{}{}".format(*torch.cuda.get_device_capability())
        cubin, lowered = _tk_compile(source, expressions, headers, fma, arch)
        self.module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(self.module), cubin)
        self.functions, self.streams = {}, {}
        for expression, symbol in lowered.items():
            self.functions[expression] = ctypes.c_void_p()
            self.call("cuModuleGetFunction", ctypes.byref(self.functions[expression]), self.module, symbol)

    def call(self, name, *args):
        status = getattr(self.driver, name)(*args)
        if status:
            text = ctypes.c_char_p()
            self.driver.cuGetErrorName(status, ctypes.byref(text))
            raise _TkKernelError(f"{name}: {(text.value or b'unknown error').decode()}")

    def run(self, given):
        """Outputs of the plan. `given`: tensors for its inputs, in order."""
        rest, tensors = iter(given), []
        for init, shape, dtype in self.plan["buffers"]:
            kind = getattr(torch, dtype)
            if init == "input":
                tensor = next(rest).to(kind).contiguous()
                count = 1
                for length in shape:
                    count *= length
                if tensor.numel() != count:
                    raise ValueError(f"exported for a tensor of shape {shape}, got {tuple(tensor.shape)}")
            else:
                tensor = (torch.zeros if init == "zeros" else torch.empty)(shape, dtype=kind, device="cuda")
            tensors.append(tensor)
        for launch in self.plan["launches"]:
            self.launch(launch, tensors)
        return [tensors[number] for number in self.plan["outputs"]]

    def launch(self, launch, tensors):
        function, shared = self.functions[launch["kernel"]], launch["shared"]
        if shared > 48 * 1024:
            self.call("cuFuncSetAttribute", function, 8, shared)
        values = [
            ctypes.create_string_buffer(arg, len(arg))
            if isinstance(arg, bytes)
            else ctypes.c_void_p(tensors[arg[0]].data_ptr() + arg[1])
            for arg in launch["args"]
        ]
        parameters = (ctypes.c_void_p * max(len(values), 1))(*(ctypes.addressof(value) for value in values))
        geometry = (*launch["grid"], *launch["block"], shared, self.stream(launch["stream"]), parameters)
        if launch["cooperative"]:
            self.call("cuLaunchCooperativeKernel", function, *geometry)
        else:
            self.call("cuLaunchKernel", function, *geometry, None)

    def stream(self, number):
        """PyTorch's current stream for 0, one of our own that waits for the default stream for others."""
        if number == 0:
            return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        if number not in self.streams:
            self.streams[number] = ctypes.c_void_p()
            self.call("cuStreamCreate", ctypes.byref(self.streams[number]), 0)
        return self.streams[number]
