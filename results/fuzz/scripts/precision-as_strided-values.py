# torch.Tensor.as_strided: values of output 0: -0.293428898 against -2.17878938 (float64: -0.293428898) at element 1; 1 of 2 elements differ; float64 against torch.flo (precision)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the float64 result, within the error of honest arithmetic
# observed: values of output 0: -0.293428898 against -2.17878938 (float64: -0.293428898) at element 1; 1 of 2 elements differ; float64 against torch.float32
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.randn((3,), generator=torch.Generator().manual_seed(0)).as_strided((2, 2), (1, 1))
narrow = x.as_strided([1, 2], [0, 2])
x = x.to(torch.float64)
wide = x.as_strided([1, 2], [0, 2])
print('narrow ', narrow); print('float64', wide)
torch.testing.assert_close(narrow, wide, check_dtype=False, rtol=1e-5, atol=1e-6, equal_nan=True)
