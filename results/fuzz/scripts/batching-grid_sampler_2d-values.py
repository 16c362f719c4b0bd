# torch.grid_sampler_2d: values of output 0: -1.60932205e+28 against 8.27548023e-36 (float64: 4.68789318e-310) at element 0; 2 of 2 elements differ; alone against me (batching)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a batch gives what its members give alone
# observed: values of output 0: -1.60932205e+28 against 8.27548023e-36 (float64: 4.68789318e-310) at element 0; 2 of 2 elements differ; alone against member 0 of a batch
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((2, 1, 1, 1), dtype=torch.bfloat16)
y = torch.zeros((2, 1, 1, 2), dtype=torch.bfloat16)
f = lambda x: torch.grid_sampler_2d(x, y, -1, 0, False)
both = torch.stack([x, torch.zeros((2, 1, 1, 1), dtype=torch.bfloat16)])
alone = torch.utils._pytree.tree_map(lambda *t: torch.stack(t), f(both[0]), f(both[1]))
batch = torch.vmap(f)(both)
print('alone', alone); print('batch', batch)
torch.testing.assert_close(batch, alone, equal_nan=True)
