# torch.ops.aten.mse_loss.out fails an internal assertion in aten/src/ATen/native/Loss.cpp:97
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: reduction == Reduction::Mean || reduction == Reduction::Sum INTERNAL ASSERT FAILED at "/__w/pytorch/pytorch/aten/src/ATen/native/Loss.cpp":97, please report a bug to PyTorch.
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1,), dtype=torch.float32)
y = torch.zeros((1,), dtype=torch.float32)
z = torch.zeros((1,), dtype=torch.float32)
r0 = torch.ops.aten.mse_loss.out(x, y, -1, out=z)
