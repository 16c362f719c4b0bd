# torch.lu_unpack ends the process with SIGABRT
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments
# observed: SIGABRT: double free or corruption (!prev)
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.randn((20, 20), generator=torch.Generator().manual_seed(2068492518)).to(torch.complex64)
r0 = x.tanh()
x1 = torch.randn((17, 17), generator=torch.Generator().manual_seed(179150533))
r1 = x1.tanh()
x2 = torch.randint(0, 3, (3, 3, 16), generator=torch.Generator().manual_seed(1570499428)).to(torch.int32)
r2 = torch.lu_unpack(r1, x2)
x3 = torch.randn((5, 5), generator=torch.Generator().manual_seed(25006133)).to(torch.bfloat16)
y3 = torch.tensor([1, 2, 5, 4, 5], dtype=torch.int32)
r3 = torch.lu_unpack(x3, y3)
