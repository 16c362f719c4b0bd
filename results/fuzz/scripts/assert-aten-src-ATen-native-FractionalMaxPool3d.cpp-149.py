# torch.nn.functional.fractional_max_pool3d fails an internal assertion in aten/src/ATen/native/FractionalMaxPool3d.cpp:149
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: h2 >= 0 && h2 < inputH INTERNAL ASSERT FAILED at "/__w/pytorch/pytorch/aten/src/ATen/native/FractionalMaxPool3d.cpp":149, please report a bug to PyTorch.
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1, 2, 1, 2), dtype=torch.float32)
r0 = torch.nn.functional.fractional_max_pool3d(x, [1, -9223372036854775808, 1], output_size=[1, 1, 1])
