# torch.remainder: class of values of output 0: nan against 0.00859928131 (float64: nan) at element 3; 1 of 8 elements differ; plain against out= (out)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: out= receives what the plain call gives
# observed: class of values of output 0: nan against 0.00859928131 (float64: nan) at element 3; 1 of 8 elements differ; plain against out=
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.tensor([-0.12234535871120358, 0.6475170428300822, -0.06887444315844529, 1.7976931348623157e+308, 1.1125369292536007e-308, -0.9980731463630413, 1.0, 1.0], dtype=torch.float64).reshape((2, 2, 2))
y = torch.tensor([1.5409960746765137, -0.293428897857666, -2.1787893772125244, 0.5684312582015991, -1.0845223665237427, -1.3985954523086548, 0.40334683656692505, 0.8380263447761536], dtype=torch.float32).reshape((2, 2, 2))
plain = torch.remainder(x, y)
out = torch.zeros(plain.numel() * 2, dtype=plain.dtype)[::2].reshape(plain.shape)
torch.remainder(x, y, out=out)
print('plain', plain); print('out  ', out)
torch.testing.assert_close(out, plain, equal_nan=True)
