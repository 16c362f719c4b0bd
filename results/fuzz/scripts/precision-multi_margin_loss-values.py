# torch.nn.functional.multi_margin_loss: values of output 0: 2.2868724e+243 against 0 (float64: 4.65116883e-310) at element 0; 1 of 1 elements differ; float64 against torch.float32 (precision)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the float64 result, within the error of honest arithmetic
# observed: values of output 0: 2.2868724e+243 against 0 (float64: 4.65116883e-310) at element 0; 1 of 1 elements differ; float64 against torch.float32
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((0, 1), dtype=torch.float32)
y = torch.zeros((0,), dtype=torch.int64)
narrow = torch.nn.functional.multi_margin_loss(x, y)
x = x.to(torch.float64)
wide = torch.nn.functional.multi_margin_loss(x, y)
print('narrow ', narrow); print('float64', wide)
torch.testing.assert_close(narrow, wide, check_dtype=False, rtol=1e-5, atol=1e-6, equal_nan=True)
