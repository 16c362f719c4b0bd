# torch.fft.rfftfreq: shape of output 0: meta (1,), CPU () (metadata)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the shape and dtype that the meta device tells
# observed: shape of output 0: meta (1,), CPU ()
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((), dtype=torch.float32)
cpu = torch.fft.rfftfreq(0, out=x)
x = x.to('meta')
meta = torch.fft.rfftfreq(0, out=x)
show = lambda r: [(t.shape, t.dtype) for t in (r if isinstance(r, (tuple, list)) else [r])]
print('CPU ', show(cpu)); print('meta', show(meta))
assert show(cpu) == show(meta)
