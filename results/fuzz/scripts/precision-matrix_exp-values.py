# torch.linalg.matrix_exp: values of output 0: 1 against -1.29736116e+30 (float64: 1) at element 0; 4 of 8 elements differ; float64 against torch.bfloat16 (precision)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the float64 result, within the error of honest arithmetic
# observed: values of output 0: 1 against -1.29736116e+30 (float64: 1) at element 0; 4 of 8 elements differ; float64 against torch.bfloat16
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((2, 2, 2), dtype=torch.bfloat16)
narrow = torch.linalg.matrix_exp(x)
x = x.to(torch.float64)
wide = torch.linalg.matrix_exp(x)
print('narrow ', narrow); print('float64', wide)
torch.testing.assert_close(narrow, wide, check_dtype=False, rtol=1e-5, atol=1e-6, equal_nan=True)
