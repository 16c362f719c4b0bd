# torch.native_group_norm: values of output 0: -1 against 0 (float64: -1) at element 1; 1 of 2 elements differ; float64 against torch.float32 (precision)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the float64 result, within the error of honest arithmetic
# observed: values of output 0: -1 against 0 (float64: -1) at element 1; 1 of 2 elements differ; float64 against torch.float32
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.tensor([1.5409960746765137, -0.293428897857666], dtype=torch.float32)
y = torch.zeros(3, dtype=torch.float32).as_strided((2,), (2,), 0).copy_(torch.ones((2,), dtype=torch.float32))
z = torch.zeros((2,), dtype=torch.float32)
narrow = torch.native_group_norm(x, y, z, 1, 2, 1, 1, 0.0)
x = x.to(torch.float64)
y = y.to(torch.float64)
z = z.to(torch.float64)
wide = torch.native_group_norm(x, y, z, 1, 2, 1, 1, 0.0)
print('narrow ', narrow); print('float64', wide)
torch.testing.assert_close(narrow, wide, check_dtype=False, rtol=1e-5, atol=1e-6, equal_nan=True)
