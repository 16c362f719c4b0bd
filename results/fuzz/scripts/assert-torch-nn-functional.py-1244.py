# torch.nn.functional.lp_pool1d raises ZeroDivisionError whose text tells of its inside: float division by zero
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: ZeroDivisionError: float division by zero
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1, 1), dtype=torch.float32)
r0 = torch.nn.functional.lp_pool1d(x, 0, 1)
