# torch.nn.functional.scaled_dot_product_attention: values of output 0: 0 against 1.16056879e+27 (float64: 0) at element 2; 5 of 12 elements differ; float64 against torch.bfloat16 (precision)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the float64 result, within the error of honest arithmetic
# observed: values of output 0: 0 against 1.16056879e+27 (float64: 0) at element 2; 5 of 12 elements differ; float64 against torch.bfloat16
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((5,), dtype=torch.bfloat16).as_strided((2, 2, 1, 3), (1, 1, 1, 1))
y = torch.zeros((2, 2, 1, 3), dtype=torch.bfloat16)
z = torch.zeros((2, 2, 1, 3), dtype=torch.bfloat16)
narrow = torch.nn.functional.scaled_dot_product_attention(x, y, z)
x = x.to(torch.float64)
y = y.to(torch.float64)
z = z.to(torch.float64)
wide = torch.nn.functional.scaled_dot_product_attention(x, y, z)
print('narrow ', narrow); print('float64', wide)
torch.testing.assert_close(narrow, wide, check_dtype=False, rtol=1e-5, atol=1e-6, equal_nan=True)
