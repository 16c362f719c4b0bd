# torch.conv_transpose3d raises RuntimeError whose text tells of its inside: /__w/pytorch/pytorch/build/aten/src/ATen/RegisterCompositeExplicitAutograd_0.cpp:3063: SymIntArrayRef expected to contai
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: /__w/pytorch/pytorch/build/aten/src/ATen/RegisterCompositeExplicitAutograd_0.cpp:3063: SymIntArrayRef expected to contain only concrete integers
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1, 1, 1, 1), dtype=torch.int64)
y = torch.zeros((1,), dtype=torch.int64)
z = torch.zeros((1,), dtype=torch.int64)
r0 = torch.conv_transpose3d(x, y, z, dilation=[0, 0, -9223372036854775808])
