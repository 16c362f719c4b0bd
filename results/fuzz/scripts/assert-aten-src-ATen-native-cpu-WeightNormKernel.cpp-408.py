# torch.ops.aten._weight_norm_interface.out fails an internal assertion in aten/src/ATen/native/cpu/WeightNormKernel.cpp:408
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: dim == 0 || dim == v.dim() - 1 INTERNAL ASSERT FAILED at "/__w/pytorch/pytorch/aten/src/ATen/native/cpu/WeightNormKernel.cpp":408, please report a bug to PyTorch. fused kernels can only be applied for first or last dim
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1, 5), dtype=torch.float32)
r0 = torch.ops.aten._histogramdd_bin_edges.default(x, [0, 0, 0, 0, 0])
r1 = torch.ops.aten.arange.out(0, out=r0)
x2 = torch.zeros((1,), dtype=torch.float32)
y2 = torch.zeros((1,), dtype=torch.float32)
z2 = torch.zeros((), dtype=torch.float32)
r2 = torch.ops.aten._weight_norm_interface.out(r1, x2, 1, out0=y2, out1=z2)
