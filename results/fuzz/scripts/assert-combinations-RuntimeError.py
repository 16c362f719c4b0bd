# torch.combinations raises RuntimeError whose text tells of its inside: std::bad_alloc
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: std::bad_alloc
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1,), dtype=torch.bool)
r0 = torch.combinations(x, r=1073741824)
