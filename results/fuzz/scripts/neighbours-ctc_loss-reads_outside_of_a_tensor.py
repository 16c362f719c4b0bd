# torch.nn.functional.ctc_loss: reads outside of a tensor: with other memory beside its arguments the result is -0.4441468417644501 against -0.29627901315689087 (element 0, (neighbours)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result that memory beside the arguments does not change, and no write outside of them
# observed: reads outside of a tensor: with other memory beside its arguments the result is -0.4441468417644501 against -0.29627901315689087 (element 0, 1 of 1) of that before
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
results = []
for byte in (63, 193):  # memory beside the arguments
    x = torch.full((1224,), byte, dtype=torch.uint8).view(torch.float32).as_strided((50, 1), (1, 1), 128)
    x.copy_(torch.zeros((50, 1), dtype=torch.float32))
    y = torch.full((1216,), byte, dtype=torch.uint8).view(torch.int64).as_strided((24,), (1,), 64)
    y.copy_(torch.ones((24,), dtype=torch.int64))
    z = torch.full((1032,), byte, dtype=torch.uint8).view(torch.int64).as_strided((1,), (1,), 64)
    z.copy_(torch.full((1,), 50, dtype=torch.int64))
    w = torch.full((1032,), byte, dtype=torch.uint8).view(torch.int64).as_strided((1,), (1,), 64)
    w.copy_(torch.full((1,), 24, dtype=torch.int64))
    results.append(torch.nn.functional.ctc_loss(x, y, z, w))
    print(results[-1])
torch.testing.assert_close(results[1], results[0], rtol=0, atol=0, equal_nan=True)
