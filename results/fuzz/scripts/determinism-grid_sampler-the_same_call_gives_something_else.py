# torch.grid_sampler: the same call gives something else: call 1 -1.7723659202715196e-29 against -1.1054645287788295e-29 (element 0, 1 of 1) of call 2 (determinism)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the same every time, but for roundings
# observed: the same call gives something else: call 1 -1.7723659202715196e-29 against -1.1054645287788295e-29 (element 0, 1 of 1) of call 2
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
results = []
for byte in (0, 127, 193):
    x = torch.zeros((1, 1, 1, 1), dtype=torch.float32)
    y = torch.zeros((1, 1, 1, 2), dtype=torch.float32)
    stale = [torch.full((size,), byte, dtype=torch.uint8) for size in range(4, 2000, 4)]; del stale
    results.append(torch.grid_sampler(x, y, 0, -1, False))
    print(results[-1])
for r in results: torch.testing.assert_close(r, results[0], rtol=0, atol=0, equal_nan=True)
