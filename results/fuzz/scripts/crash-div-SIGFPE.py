# torch.Tensor.div_ ends the process with SIGFPE
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments
# observed: SIGFPE:
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.tensor([-1, -1, 1, -9223372036854775808, 1, -1, 0, 1, 0, 1, 9223372036854775807, 9223372036854775807, 9223372036854775807, -1, 1, 9223372036854775807, 9223372036854775807, 1, -1, 1, 9223372036854775807, -1, 9223372036854775807, -1, -1, 9223372036854775807, -1, -1, -1, -9223372036854775808, 9223372036854775807, 0], dtype=torch.int64).reshape((4, 2, 4))
y = torch.tensor([5, 1, -7, -4, -3, -1, -9, 1], dtype=torch.int64).as_strided((4, 2, 4), (0, 4, 1))
r0 = x.div_(y, rounding_mode='trunc')
