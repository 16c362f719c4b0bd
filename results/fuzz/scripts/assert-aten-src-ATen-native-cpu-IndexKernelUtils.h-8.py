# torch.index_put_ fails an internal assertion in aten/src/ATen/native/cpu/IndexKernelUtils.h:8
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: ntensor >= 3 INTERNAL ASSERT FAILED at "/__w/pytorch/pytorch/aten/src/ATen/native/cpu/IndexKernelUtils.h":8, please report a bug to PyTorch.
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((2,), dtype=torch.int64)
y = torch.tensor(False, dtype=torch.bool)
z = torch.zeros((2,), dtype=torch.int64)
r0 = torch.index_put_(x, [y], z)
