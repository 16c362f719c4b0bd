# torch.native_batch_norm: shape of output 1: meta (1,), CPU (0,) (metadata)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the shape and dtype that the meta device tells
# observed: shape of output 1: meta (1,), CPU (0,)
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1, 1), dtype=torch.bfloat16)
y = torch.zeros((1,), dtype=torch.bfloat16)
z = torch.zeros((1,), dtype=torch.bfloat16)
w = torch.zeros((1,), dtype=torch.bfloat16)
u = torch.zeros((1,), dtype=torch.bfloat16)
cpu = torch.native_batch_norm(x, y, z, w, u, False, 0.0, 0.0)
x = x.to('meta')
y = y.to('meta')
z = z.to('meta')
w = w.to('meta')
u = u.to('meta')
meta = torch.native_batch_norm(x, y, z, w, u, False, 0.0, 0.0)
show = lambda r: [(t.shape, t.dtype) for t in (r if isinstance(r, (tuple, list)) else [r])]
print('CPU ', show(cpu)); print('meta', show(meta))
assert show(cpu) == show(meta)
