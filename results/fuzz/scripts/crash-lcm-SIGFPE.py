# torch.lcm_ ends the process with SIGFPE
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments
# observed: SIGFPE:
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.full((1,), -9223372036854775808, dtype=torch.int64)
y = torch.full((1,), 5, dtype=torch.int64)
r0 = torch.lcm_(x, y)
