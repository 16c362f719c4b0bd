# torch.Tensor.pinverse does not return
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result or an exception within seconds for arguments of this size
# observed: timeout: no end after 3 s of processor time
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.randn((1024, 1024), generator=torch.Generator().manual_seed(21571457)).to(torch.complex64)
narrow = x.pinverse()
x = x.to(torch.complex128)
wide = x.pinverse()
print('narrow ', narrow); print('float64', wide)
torch.testing.assert_close(narrow, wide, check_dtype=False, rtol=1e-5, atol=1e-6, equal_nan=True)
