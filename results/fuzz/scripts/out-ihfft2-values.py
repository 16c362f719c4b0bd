# torch.fft.ihfft2: values of output 0: 1-0j against 0+0j (float64: 1-0j) at element 0; 1 of 1 elements differ; plain against out= (out)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: out= receives what the plain call gives
# observed: values of output 0: 1-0j against 0+0j (float64: 1-0j) at element 0; 1 of 1 elements differ; plain against out=
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.ones((1,), dtype=torch.float32)
plain = torch.fft.ihfft2(x, dim=0)
out = torch.zeros(plain.numel() * 2, dtype=plain.dtype)[::2].reshape(plain.shape)
torch.fft.ihfft2(x, dim=0, out=out)
print('plain', plain); print('out  ', out)
torch.testing.assert_close(out, plain, equal_nan=True)
