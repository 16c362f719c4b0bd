# torch.lstm ends the process with SIGSEGV
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments
# observed: SIGSEGV:
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1, 1, 1), dtype=torch.float32)
y = torch.zeros((2, 1, 1), dtype=torch.float32)
z = torch.zeros((1, 1, 1), dtype=torch.float32)
w = torch.zeros((1,), dtype=torch.float32)
u = torch.zeros((2, 2, 1, 2, 1), dtype=torch.float32)
cpu = torch.lstm(x, [y, z], [w, u], False, 1, 0.5, False, False, True)
x = x.to('meta')
y = y.to('meta')
z = z.to('meta')
w = w.to('meta')
u = u.to('meta')
meta = torch.lstm(x, [y, z], [w, u], False, 1, 0.5, False, False, True)
show = lambda r: [(t.shape, t.dtype) for t in (r if isinstance(r, (tuple, list)) else [r])]
print('CPU ', show(cpu)); print('meta', show(meta))
assert show(cpu) == show(meta)
