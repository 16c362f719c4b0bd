# torch.nn.functional.fractional_max_pool3d_with_indices raises OverflowError whose text tells of its inside: cannot convert float infinity to integer
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: OverflowError: cannot convert float infinity to integer
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1, 1, 1), dtype=torch.float32)
r0 = torch.nn.functional.fractional_max_pool3d_with_indices(x, [0], output_ratio=[0.0, float('-inf'), 0.0])
