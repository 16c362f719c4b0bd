# torch.Tensor.stride: whole numbers of output 0: 1 against 2 (float64: 1) at element 0; 1 of 1 elements differ; float64 against torch.int64 (precision)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the float64 result, within the error of honest arithmetic
# observed: whole numbers of output 0: 1 against 2 (float64: 1) at element 0; 1 of 1 elements differ; float64 against torch.int64
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros(3, dtype=torch.float32).as_strided((2,), (2,), 0).copy_(torch.zeros((2,), dtype=torch.float32))
narrow = x.stride(0)
x = x.to(torch.float64)
wide = x.stride(0)
print('narrow ', narrow); print('float64', wide)
torch.testing.assert_close(narrow, wide, check_dtype=False, rtol=1e-5, atol=1e-6, equal_nan=True)
