# torch.native_group_norm: reads outside of a tensor: with other memory beside its arguments the result is -1.140625 against 36.75 (element 2, 2 of 4) of that before (neighbours)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result that memory beside the arguments does not change, and no write outside of them
# observed: reads outside of a tensor: with other memory beside its arguments the result is -1.140625 against 36.75 (element 2, 2 of 4) of that before
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
results = []
for byte in (63, 193):  # memory beside the arguments
    x = torch.full((1032,), byte, dtype=torch.uint8).view(torch.bfloat16).as_strided((2, 2), (2, 1), 256)
    x.copy_(torch.tensor([1.5390625, -0.29296875, -2.171875, 0.5703125], dtype=torch.bfloat16).reshape((2, 2)))
    y = torch.full((1030,), byte, dtype=torch.uint8).view(torch.bfloat16).as_strided((2,), (2,), 256)
    y.copy_(torch.zeros((2,), dtype=torch.bfloat16))
    z = torch.full((1028,), byte, dtype=torch.uint8).view(torch.bfloat16).as_strided((2,), (1,), 256)
    z.copy_(torch.zeros((2,), dtype=torch.bfloat16))
    results.append(torch.native_group_norm(x, y, z, 1, 2, 2, 1, 0.0))
    print(results[-1])
torch.testing.assert_close(results[1], results[0], rtol=0, atol=0, equal_nan=True)
