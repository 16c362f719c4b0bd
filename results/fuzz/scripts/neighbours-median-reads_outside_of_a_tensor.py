# torch.Tensor.median: reads outside of a tensor: with other memory beside its arguments the result is 0.0 against -24.219606399536133 (element 0, 1 of 1) of that  (neighbours)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result that memory beside the arguments does not change, and no write outside of them
# observed: reads outside of a tensor: with other memory beside its arguments the result is 0.0 against -24.219606399536133 (element 0, 1 of 1) of that before
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
results = []
for byte in (63, 193):  # memory beside the arguments
    x = torch.full((1028,), byte, dtype=torch.uint8).view(torch.float32).as_strided((2,), (0,), 128)
    results.append(x.median(dim=0))
    print(results[-1])
torch.testing.assert_close(results[1], results[0], rtol=0, atol=0, equal_nan=True)
