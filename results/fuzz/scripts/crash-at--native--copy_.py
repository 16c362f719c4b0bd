# torch.Tensor.as_strided_ ends the process with SIGSEGV in at::native::copy_
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments
# observed: SIGSEGV:
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
results = []
for byte in (0, 127, 193):
    x = torch.zeros((1,), dtype=torch.bool)
    stale = [torch.full((size,), byte, dtype=torch.uint8) for size in range(4, 2000, 4)]; del stale
    results.append(x.as_strided_([1, 2, 1, 1], [0, 9223372036854775807, 0, 0]))
    print(results[-1])
for r in results: torch.testing.assert_close(r, results[0], rtol=0, atol=0, equal_nan=True)
