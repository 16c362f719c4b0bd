# torch.Tensor.matrix_exp: class of values of output 0: 4.19452805 against inf (float64: 4.19452805) at element 0; 4 of 4 elements differ; float64 against torch.bfloat (precision)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the float64 result, within the error of honest arithmetic
# observed: class of values of output 0: 4.19452805 against inf (float64: 4.19452805) at element 0; 4 of 4 elements differ; float64 against torch.bfloat16
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.ones((2, 2), dtype=torch.bfloat16)
narrow = x.matrix_exp()
x = x.to(torch.float64)
wide = x.matrix_exp()
print('narrow ', narrow); print('float64', wide)
torch.testing.assert_close(narrow, wide, check_dtype=False, rtol=1e-5, atol=1e-6, equal_nan=True)
