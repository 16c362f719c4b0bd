# torch.Tensor.any: shape of output 0: (1,) against (); alone against member 0 of a batch (batching)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a batch gives what its members give alone
# observed: shape of output 0: (1,) against (); alone against member 0 of a batch
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1,), dtype=torch.complex64)
f = lambda x: x.any(dim=[])
both = torch.stack([x, torch.zeros((1,), dtype=torch.complex64)])
alone = torch.utils._pytree.tree_map(lambda *t: torch.stack(t), f(both[0]), f(both[1]))
batch = torch.vmap(f)(both)
print('alone', alone); print('batch', batch)
torch.testing.assert_close(batch, alone, equal_nan=True)
