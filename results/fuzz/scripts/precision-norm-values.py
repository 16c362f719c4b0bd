# torch.linalg.norm: class of values of output 0: 1.54099607 against inf (float64: 1.54099607) at element 0; 1 of 1 elements differ; float64 against torch.float3 (precision)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the float64 result, within the error of honest arithmetic
# observed: class of values of output 0: 1.54099607 against inf (float64: 1.54099607) at element 0; 1 of 1 elements differ; float64 against torch.float32
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.tensor([1.5409960746765137, -0.293428897857666], dtype=torch.float32)
narrow = torch.linalg.norm(x, 256)
x = x.to(torch.float64)
wide = torch.linalg.norm(x, 256)
print('narrow ', narrow); print('float64', wide)
torch.testing.assert_close(narrow, wide, check_dtype=False, rtol=1e-5, atol=1e-6, equal_nan=True)
