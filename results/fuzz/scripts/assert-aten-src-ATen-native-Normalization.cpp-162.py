# torch.native_batch_norm fails an internal assertion in aten/src/ATen/native/Normalization.cpp:162
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: t.defined() && t.dim() == 1 INTERNAL ASSERT FAILED at "/__w/pytorch/pytorch/aten/src/ATen/native/Normalization.cpp":162, please report a bug to PyTorch.
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1,), dtype=torch.int64)
y = torch.zeros((1, 1), dtype=torch.int64)
r0 = x.heaviside(y)
x1 = torch.zeros(3, dtype=torch.float64).as_strided((2,), (2,), 0).copy_(torch.zeros((2,), dtype=torch.float64))
y1 = torch.zeros((1,), dtype=torch.float64)
z1 = torch.zeros((1,), dtype=torch.float32)
w1 = torch.zeros((1,), dtype=torch.float32)
r1 = torch.native_batch_norm(x1, y1, z1, w1, r0, False, 0.0, 0.0)
