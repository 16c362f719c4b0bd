# torch.Tensor.renorm_ fails an internal assertion in aten/src/ATen/AccumulateType.cpp:23
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: false INTERNAL ASSERT FAILED at "/__w/pytorch/pytorch/aten/src/ATen/AccumulateType.cpp":23, please report a bug to PyTorch. Unrecognized ScalarType: UInt64
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1, 1), dtype=torch.uint64)
r0 = x.renorm_(1.0, 0, 0.0)
