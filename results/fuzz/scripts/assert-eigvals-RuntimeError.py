# torch.linalg.eigvals raises RuntimeError whose text tells of its inside: Unknown Complex ScalarType for Long
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: Unknown Complex ScalarType for Long
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((0, 0), dtype=torch.int64)
r0 = torch.linalg.eigvals(x)
