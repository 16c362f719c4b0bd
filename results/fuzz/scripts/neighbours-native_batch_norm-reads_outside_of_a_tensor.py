# torch.native_batch_norm: reads outside of a tensor: with other memory beside its arguments the result is 0.0004663812464484878 against nan (element 1, 1 of 2) of tha (neighbours)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result that memory beside the arguments does not change, and no write outside of them
# observed: reads outside of a tensor: with other memory beside its arguments the result is 0.0004663812464484878 against nan (element 1, 1 of 2) of that before
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
results = []
for byte in (63, 193):  # memory beside the arguments
    x = torch.full((1040,), byte, dtype=torch.uint8).view(torch.float64).as_strided((1, 2, 1, 1, 1), (2, 1, 1, 1, 1), 64)
    x.copy_(torch.zeros((1, 2, 1, 1, 1), dtype=torch.float64))
    y = torch.full((1032,), byte, dtype=torch.uint8).view(torch.float64).as_strided((1,), (1,), 64)
    y.copy_(torch.zeros((1,), dtype=torch.float64))
    z = torch.full((1032,), byte, dtype=torch.uint8).view(torch.float64).as_strided((1,), (1,), 64)
    z.copy_(torch.zeros((1,), dtype=torch.float64))
    w = torch.full((1032,), byte, dtype=torch.uint8).view(torch.float64).as_strided((1,), (1,), 64)
    w.copy_(torch.zeros((1,), dtype=torch.float64))
    u = torch.full((1032,), byte, dtype=torch.uint8).view(torch.float64).as_strided((1,), (1,), 64)
    u.copy_(torch.zeros((1,), dtype=torch.float64))
    results.append(torch.native_batch_norm(x, y, z, w, u, False, 0.0, 0.0))
    print(results[-1])
torch.testing.assert_close(results[1], results[0], rtol=0, atol=0, equal_nan=True)
