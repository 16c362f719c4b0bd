# torch.Tensor.sgn: class of values of output 0: inf-infj against 0.90615499-0.422946215j (float64: 0.906154828-0.422946128j) at element 0; 7 of 8 elements diff (batching)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a batch gives what its members give alone
# observed: class of values of output 0: inf-infj against 0.90615499-0.422946215j (float64: 0.906154828-0.422946128j) at element 0; 7 of 8 elements differ; alone against member 0 of a batch
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.tensor([(2.2642909261761843e-39-1.0568536965999197e-39j), (-4.311543141003884e-40-5.926595673076808e-40j), (-3.2014429053565495e-39-8.766775426539634e-40j), (8.35234140571557e-40+2.6747844957185676e-40j), (-1.5935622188240393e-39-1.2587695949214113e-39j), (-2.0550518420801313e-39+1.6171923148279487e-39j), (5.926651725015381e-40-1.5739678623973854e-39j), (1.2313686047500038e-39+1.8029386301695961e-40j)], dtype=torch.complex64)
f = lambda x: x.sgn()
both = torch.stack([x, (torch.randn((8,), generator=torch.Generator().manual_seed(1)).double() * torch.finfo(torch.complex64).smallest_normal / 8).to(torch.complex64)])
alone = torch.utils._pytree.tree_map(lambda *t: torch.stack(t), f(both[0]), f(both[1]))
batch = torch.vmap(f)(both)
print('alone', alone); print('batch', batch)
torch.testing.assert_close(batch, alone, equal_nan=True)
