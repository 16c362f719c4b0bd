# torch.ops.aten._weight_norm_interface.default: the same call gives other bits: call 1 0.0 against 4.5641692281523617e-41 (element 1, 1 of 2) of call 2 (determinism)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the same bits every time
# observed: the same call gives other bits: call 1 0.0 against 4.5641692281523617e-41 (element 1, 1 of 2) of call 2
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
results = []
for byte in (0, 127, 193):
    x = torch.zeros((1,), dtype=torch.float32)
    y = torch.zeros((2,), dtype=torch.float32)
    stale = [torch.full((size,), byte, dtype=torch.uint8) for size in range(4, 2000, 4)]; del stale
    results.append(torch.ops.aten._weight_norm_interface.default(x, y))
    print(results[-1])
for r in results: torch.testing.assert_close(r, results[0], rtol=0, atol=0, equal_nan=True)
