# torch.ops.aten._weight_norm_interface_backward.out: reads outside of a tensor: with other memory beside its arguments the result is 0.7470588088035583 against -24.219606399536133 (element 1, 1 (neighbours)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result that memory beside the arguments does not change, and no write outside of them
# observed: reads outside of a tensor: with other memory beside its arguments the result is 0.7470588088035583 against -24.219606399536133 (element 1, 1 of 2) of that before
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
results = []
for byte in (63, 193):  # memory beside the arguments
    x = torch.full((1028,), byte, dtype=torch.uint8).view(torch.float32).as_strided((1,), (1,), 128)
    x.copy_(torch.zeros((1,), dtype=torch.float32))
    y = torch.full((1032,), byte, dtype=torch.uint8).view(torch.float32).as_strided((1, 2), (2, 1), 128)
    y.copy_(torch.zeros((1, 2), dtype=torch.float32))
    z = torch.full((1028,), byte, dtype=torch.uint8).view(torch.float32).as_strided((), (), 128)
    z.copy_(torch.zeros((), dtype=torch.float32))
    w = torch.full((1028,), byte, dtype=torch.uint8).view(torch.float32).as_strided((1,), (1,), 128)
    w.copy_(torch.zeros((1,), dtype=torch.float32))
    u = torch.full((1028,), byte, dtype=torch.uint8).view(torch.float32).as_strided((1,), (1,), 128)
    u.copy_(torch.zeros((1,), dtype=torch.float32))
    v = torch.full((1028,), byte, dtype=torch.uint8).view(torch.float32).as_strided((), (), 128)
    v.copy_(torch.zeros((), dtype=torch.float32))
    results.append(torch.ops.aten._weight_norm_interface_backward.out(x, y, z, w, 1, out0=u, out1=v))
    print(results[-1])
torch.testing.assert_close(results[1], results[0], rtol=0, atol=0, equal_nan=True)
