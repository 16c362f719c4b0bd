# torch.embedding_bag ends the process with SIGABRT in at::native::embedding_bag
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments
# observed: SIGABRT: corrupted size vs. prev_size
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.randn((4, 8), generator=torch.Generator().manual_seed(1330086383))
y = torch.randint(0, 2, (4, 8), generator=torch.Generator().manual_seed(1521904634)).to(torch.int64)
z = torch.randint(0, 2, (4, 8), generator=torch.Generator().manual_seed(1892520117)).to(torch.int64)
cpu = torch.embedding_bag(x, y, z)
x = x.to('meta')
y = y.to('meta')
z = z.to('meta')
meta = torch.embedding_bag(x, y, z)
show = lambda r: [(t.shape, t.dtype) for t in (r if isinstance(r, (tuple, list)) else [r])]
print('CPU ', show(cpu)); print('meta', show(meta))
assert show(cpu) == show(meta)
