# torch.linalg.ldl_factor fails an internal assertion in aten/src/ATen/native/BatchLinearAlgebra.cpp:1642
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: false INTERNAL ASSERT FAILED at "/__w/pytorch/pytorch/aten/src/ATen/native/BatchLinearAlgebra.cpp":1642, please report a bug to PyTorch. torch.linalg.ldl_factor: Unknown error code: 1.
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1, 1), dtype=torch.complex64)
r0 = torch.linalg.ldl_factor(x)
