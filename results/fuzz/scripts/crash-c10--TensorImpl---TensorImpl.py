# torch.embedding_bag ends the process with SIGSEGV in c10::TensorImpl::~TensorImpl
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments
# observed: SIGSEGV:
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
results = []
for byte in (0, 127, 193):
    x = torch.randn((4, 8), generator=torch.Generator().manual_seed(949937516))
    y = torch.randint(0, 2, (4, 8), generator=torch.Generator().manual_seed(1487837594)).to(torch.int64)
    z = torch.randint(0, 2, (4, 8), generator=torch.Generator().manual_seed(1054144847)).to(torch.int64)
    stale = [torch.full((size,), byte, dtype=torch.uint8) for size in range(4, 2000, 4)]; del stale
    results.append(torch.embedding_bag(x, y, z))
    print(results[-1])
for r in results: torch.testing.assert_close(r, results[0], rtol=0, atol=0, equal_nan=True)
