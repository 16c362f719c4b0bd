# torch.Tensor.as_strided: values of output 0: 0+0j against 1+1j (float64: 1+1j) at element 0; 1 of 1 elements differ; plain against in place (in_place)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the in-place variant gives what the plain call gives
# observed: values of output 0: 0+0j against 1+1j (float64: 1+1j) at element 0; 1 of 1 elements differ; plain against in place
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros(6, dtype=torch.complex64).as_strided((1,), (1,), 5).copy_(torch.ones((1,), dtype=torch.complex64))
plain = x.as_strided([1], [0], storage_offset=0)
x = x.clone()
other = x.as_strided_([1], [0], storage_offset=0)
print('plain   ', plain); print('in place', other)
torch.testing.assert_close(other, plain, equal_nan=True)
