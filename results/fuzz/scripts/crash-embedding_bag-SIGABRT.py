# torch.embedding_bag ends the process with SIGABRT
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments
# observed: SIGABRT: malloc_consolidate(): invalid chunk size
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.randn((4, 5), generator=torch.Generator().manual_seed(1387122817)).permute((1, 0)).contiguous().permute((1, 0))
y = torch.randint(0, 10, (4, 5), generator=torch.Generator().manual_seed(1085631735)).to(torch.int64).permute((1, 0)).contiguous().permute((1, 0))
z = torch.randint(0, 2, (4, 5), generator=torch.Generator().manual_seed(905315129)).to(torch.int64).permute((1, 0)).contiguous().permute((1, 0))
other = torch.embedding_bag(x, y, z)
x = x.contiguous()
y = y.contiguous()
z = z.contiguous()
plain = torch.embedding_bag(x, y, z)
print('contiguous', plain); print('other     ', other)
torch.testing.assert_close(other, plain, equal_nan=True)
