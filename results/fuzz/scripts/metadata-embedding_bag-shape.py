# torch.embedding_bag: shape of output 1: meta (1,), CPU (0,) (metadata)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the shape and dtype that the meta device tells
# observed: shape of output 1: meta (1,), CPU (0,)
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1, 1), dtype=torch.float32)
y = torch.zeros((1,), dtype=torch.int64)
z = torch.zeros((1,), dtype=torch.int64)
cpu = torch.embedding_bag(x, y, z)
x = x.to('meta')
y = y.to('meta')
z = z.to('meta')
meta = torch.embedding_bag(x, y, z)
show = lambda r: [(t.shape, t.dtype) for t in (r if isinstance(r, (tuple, list)) else [r])]
print('CPU ', show(cpu)); print('meta', show(meta))
assert show(cpu) == show(meta)
