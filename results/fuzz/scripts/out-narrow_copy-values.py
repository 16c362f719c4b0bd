# torch.narrow_copy: whole numbers of output 0: 1 against 0 (float64: 1) at element 1; 1 of 2 elements differ; plain against out= (out)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: out= receives what the plain call gives
# observed: whole numbers of output 0: 1 against 0 (float64: 1) at element 1; 1 of 2 elements differ; plain against out=
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.ones((1, 2), dtype=torch.int64)
plain = torch.narrow_copy(x, 1, 0, 2)
out = torch.zeros(plain.numel() * 2, dtype=plain.dtype)[::2].reshape(plain.shape)
torch.narrow_copy(x, 1, 0, 2, out=out)
print('plain', plain); print('out  ', out)
torch.testing.assert_close(out, plain, equal_nan=True)
