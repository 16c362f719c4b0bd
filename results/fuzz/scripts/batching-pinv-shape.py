# torch.linalg.pinv: shape of output 0: (1, 0, 0) against (0, 0); alone against member 0 of a batch (batching)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a batch gives what its members give alone
# observed: shape of output 0: (1, 0, 0) against (0, 0); alone against member 0 of a batch
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1, 0, 0), dtype=torch.complex64)
y = torch.zeros((), dtype=torch.float32)
f = lambda y: torch.linalg.pinv(x, rtol=y)
both = torch.stack([y, torch.zeros((), dtype=torch.float32)])
alone = torch.utils._pytree.tree_map(lambda *t: torch.stack(t), f(both[0]), f(both[1]))
batch = torch.vmap(f)(both)
print('alone', alone); print('batch', batch)
torch.testing.assert_close(batch, alone, equal_nan=True)
