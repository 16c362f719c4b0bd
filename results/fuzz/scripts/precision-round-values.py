# torch.special.round: class of values of output 0: 0 against nan (float64: 0) at element 0; 1 of 1 elements differ; float64 against torch.float32 (precision)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the float64 result, within the error of honest arithmetic
# observed: class of values of output 0: 0 against nan (float64: 0) at element 0; 1 of 1 elements differ; float64 against torch.float32
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1,), dtype=torch.float32)
narrow = torch.special.round(x, decimals=63)
x = x.to(torch.float64)
wide = torch.special.round(x, decimals=63)
print('narrow ', narrow); print('float64', wide)
torch.testing.assert_close(narrow, wide, check_dtype=False, rtol=1e-5, atol=1e-6, equal_nan=True)
