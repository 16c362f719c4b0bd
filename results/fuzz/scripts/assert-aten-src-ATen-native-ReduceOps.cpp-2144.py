# torch.ops.aten._is_all_true.default fails an internal assertion in aten/src/ATen/native/ReduceOps.cpp:2144
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: self.scalar_type() == at::kBool INTERNAL ASSERT FAILED at "/__w/pytorch/pytorch/aten/src/ATen/native/ReduceOps.cpp":2144, please report a bug to PyTorch.
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1,), dtype=torch.float32)
y = torch.zeros((1,), dtype=torch.int64)
r0 = x.take_along_dim(y)
r1 = torch.ops.aten._is_all_true.default(r0)
