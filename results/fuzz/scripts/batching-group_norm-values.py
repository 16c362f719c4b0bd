# torch.group_norm: class of values of output 0: nan against inf (float64: nan) at element 0; 1 of 2 elements differ; alone against member 0 of a batch (batching)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a batch gives what its members give alone
# observed: class of values of output 0: nan against inf (float64: nan) at element 0; 1 of 2 elements differ; alone against member 0 of a batch
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.tensor([1.5390625, -0.29296875], dtype=torch.bfloat16).reshape((1, 2))
y = torch.tensor([float('inf'), -0.29296875], dtype=torch.bfloat16)
f = lambda x: torch.group_norm(x, 1, weight=y)
both = torch.stack([x, torch.randn((1, 2), generator=torch.Generator().manual_seed(1)).to(torch.bfloat16)])
alone = torch.utils._pytree.tree_map(lambda *t: torch.stack(t), f(both[0]), f(both[1]))
batch = torch.vmap(f)(both)
print('alone', alone); print('batch', batch)
torch.testing.assert_close(batch, alone, equal_nan=True)
