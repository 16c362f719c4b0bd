# torch.ops.aten._stack.out: shape of output 0: meta (1,), CPU (1, 1) (metadata)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the shape and dtype that the meta device tells
# observed: shape of output 0: meta (1,), CPU (1, 1)
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1,), dtype=torch.complex64)
y = torch.zeros((1,), dtype=torch.complex64)
cpu = torch.ops.aten._stack.out([x], out=y)
x = x.to('meta')
y = y.to('meta')
meta = torch.ops.aten._stack.out([x], out=y)
show = lambda r: [(t.shape, t.dtype) for t in (r if isinstance(r, (tuple, list)) else [r])]
print('CPU ', show(cpu)); print('meta', show(meta))
assert show(cpu) == show(meta)
