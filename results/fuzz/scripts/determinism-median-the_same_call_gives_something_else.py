# torch.median: the same call gives something else: call 1 94126616389744 against 17648 (element 0, 1 of 1) of call 2 (determinism)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the same every time, but for roundings
# observed: the same call gives something else: call 1 94126616389744 against 17648 (element 0, 1 of 1) of call 2
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
results = []
for byte in (0, 127, 193):
    x = torch.zeros((1,), dtype=torch.int64).as_strided((3,), (0,))
    stale = [torch.full((size,), byte, dtype=torch.uint8) for size in range(4, 2000, 4)]; del stale
    results.append(torch.median(x, dim=0))
    print(results[-1])
for r in results: torch.testing.assert_close(r, results[0], rtol=0, atol=0, equal_nan=True)
