# torch.Tensor.new_zeros raises RuntimeError whose text tells of its inside: /__w/pytorch/pytorch/build/aten/src/ATen/RegisterCompositeExplicitAutograd_0.cpp:4600: SymIntArrayRef expected to contai
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: /__w/pytorch/pytorch/build/aten/src/ATen/RegisterCompositeExplicitAutograd_0.cpp:4600: SymIntArrayRef expected to contain only concrete integers
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1,), dtype=torch.float32)
r0 = x.hsplit([0])
r1 = r0.new_zeros([-9223372036854775808])
