# torch.Tensor.addr: class of values of output 0: 0 against nan (float64: 0) at element 0; 1 of 1 elements differ; alone against member 0 of a batch (batching)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a batch gives what its members give alone
# observed: class of values of output 0: 0 against nan (float64: 0) at element 0; 1 of 1 elements differ; alone against member 0 of a batch
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((), dtype=torch.float32)
y = torch.full((1,), 1.5409960746765137, dtype=torch.float32)
z = torch.full((1,), 3.4028234663852886e+38, dtype=torch.float32)
f = lambda x: x.addr(y, z, alpha=0.0)
both = torch.stack([x, torch.zeros((), dtype=torch.float32)])
alone = torch.utils._pytree.tree_map(lambda *t: torch.stack(t), f(both[0]), f(both[1]))
batch = torch.vmap(f)(both)
print('alone', alone); print('batch', batch)
torch.testing.assert_close(batch, alone, equal_nan=True)
