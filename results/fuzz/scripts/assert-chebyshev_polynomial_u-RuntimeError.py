# torch.special.chebyshev_polynomial_u raises RuntimeError whose text tells of its inside: Unknown Complex ScalarType for Float8_e5m2
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: Unknown Complex ScalarType for Float8_e5m2
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1,), dtype=torch.float8_e5m2)
y = torch.zeros((), dtype=torch.complex64)
r0 = torch.special.chebyshev_polynomial_u(x, y)
