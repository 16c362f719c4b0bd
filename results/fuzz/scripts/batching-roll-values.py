# torch.Tensor.roll: values of output 0: 1.54099607-0.293428898j against 0.661352158+0.266924113j (float64: 1.54099607-0.293428898j) at element 0; 1 of 1 element (batching)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a batch gives what its members give alone
# observed: values of output 0: 1.54099607-0.293428898j against 0.661352158+0.266924113j (float64: 1.54099607-0.293428898j) at element 0; 1 of 1 elements differ; alone against member 0 of a batch
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.randn((), generator=torch.Generator().manual_seed(0)).to(torch.complex64)
f = lambda x: x.roll(1)
both = torch.stack([x, torch.randn((), generator=torch.Generator().manual_seed(1)).to(torch.complex64)])
alone = torch.utils._pytree.tree_map(lambda *t: torch.stack(t), f(both[0]), f(both[1]))
batch = torch.vmap(f)(both)
print('alone', alone); print('batch', batch)
torch.testing.assert_close(batch, alone, equal_nan=True)
