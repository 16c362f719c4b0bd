# torch.slice_scatter: values of output 0: 1 against 0 (float64: 0) at element 10; 4834 of 6859 elements differ; alone against member 0 of a batch (batching)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a batch gives what its members give alone
# observed: values of output 0: 1 against 0 (float64: 0) at element 10; 4834 of 6859 elements differ; alone against member 0 of a batch
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((55,), dtype=torch.float32).as_strided((19, 19, 19), (1, 1, 1))
y = torch.ones((5, 19, 19), dtype=torch.float32)
f = lambda y: torch.slice_scatter(x, y, 0, 10, 20, 2)
both = torch.stack([y, torch.ones((5, 19, 19), dtype=torch.float32)])
alone = torch.utils._pytree.tree_map(lambda *t: torch.stack(t), f(both[0]), f(both[1]))
batch = torch.vmap(f)(both)
print('alone', alone); print('batch', batch)
torch.testing.assert_close(batch, alone, equal_nan=True)
