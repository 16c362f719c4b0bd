# torch.ldexp_ raises RuntimeError whose text tells of its inside: Unknown Complex ScalarType for Float8_e5m2
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: Unknown Complex ScalarType for Float8_e5m2
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1,), dtype=torch.complex64)
y = torch.zeros((1,), dtype=torch.float8_e5m2)
r0 = torch.ldexp_(x, y)
