# torch.embedding_bag ends the process with SIGABRT in c10::alloc_cpu
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments
# observed: SIGABRT: corrupted size vs. prev_size
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
results = []
for byte in (63, 193):  # memory beside the arguments
    x = torch.full((1032,), byte, dtype=torch.uint8).view(torch.float32).as_strided((1, 2), (2, 1), 128)
    x.copy_(torch.zeros((1, 2), dtype=torch.float32))
    y = torch.full((1032,), byte, dtype=torch.uint8).view(torch.int64).as_strided((1, 1), (1, 1), 64)
    y.copy_(torch.zeros((1, 1), dtype=torch.int64))
    z = torch.full((1056,), byte, dtype=torch.uint8).view(torch.int64).as_strided((2, 2), (2, 1), 64)
    z.copy_(torch.zeros((2, 2), dtype=torch.int64))
    results.append(torch.embedding_bag(x, y, z))
    print(results[-1])
torch.testing.assert_close(results[1], results[0], rtol=0, atol=0, equal_nan=True)
