# torch.nn.functional.scaled_dot_product_attention: the same call gives something else: call 1 0.0 against 1.3292279957849159e+37 (element 2, 18 of 54) of call 2 (determinism)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the same every time, but for roundings
# observed: the same call gives something else: call 1 0.0 against 1.3292279957849159e+37 (element 2, 18 of 54) of call 2
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
results = []
for byte in (0, 127, 193):
    x = torch.zeros((8,), dtype=torch.bfloat16).as_strided((3, 3, 2, 3), (1, 1, 1, 1))
    y = torch.zeros((3, 3, 1, 3), dtype=torch.bfloat16)
    z = torch.zeros((3, 3, 1, 3), dtype=torch.bfloat16)
    stale = [torch.full((size,), byte, dtype=torch.uint8) for size in range(4, 2000, 4)]; del stale
    results.append(torch.nn.functional.scaled_dot_product_attention(x, y, z))
    print(results[-1])
for r in results: torch.testing.assert_close(r, results[0], rtol=0, atol=0, equal_nan=True)
