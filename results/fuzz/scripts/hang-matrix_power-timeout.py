# torch.Tensor.matrix_power does not return
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result or an exception within seconds for arguments of this size
# observed: timeout: no end after 3 s of processor time
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.full((1, 1), (-0.806505560874939-0.216168612241745j), dtype=torch.complex64)
r0 = x.matrix_power(-9223372036854775808)
