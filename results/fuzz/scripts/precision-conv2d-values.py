# torch.conv2d: class of values of output 0: nan against 0 (float64: nan) at element 1; 5 of 8 elements differ; float64 against torch.float32 (precision)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the float64 result, within the error of honest arithmetic
# observed: class of values of output 0: nan against 0 (float64: nan) at element 1; 5 of 8 elements differ; float64 against torch.float32
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((2, 1, 1), dtype=torch.float32)
y = torch.tensor([float('nan'), -0.293428897857666, -2.1787893772125244, float('nan'), -1.0845223665237427, -1.3985954523086548, 0.40334683656692505, float('nan')], dtype=torch.float32).reshape((2, 1, 2, 2))
z = torch.zeros((2,), dtype=torch.float32)
narrow = torch.conv2d(x, y, z, groups=2, padding=[1, 1])
x = x.to(torch.float64)
y = y.to(torch.float64)
z = z.to(torch.float64)
wide = torch.conv2d(x, y, z, groups=2, padding=[1, 1])
print('narrow ', narrow); print('float64', wide)
torch.testing.assert_close(narrow, wide, check_dtype=False, rtol=1e-5, atol=1e-6, equal_nan=True)
