# torch.ops.aten._embedding_bag_per_sample_weights_backward.default fails an internal assertion in aten/src/ATen/native/EmbeddingBag.cpp:1661
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: grad.dim() == 2 INTERNAL ASSERT FAILED at "/__w/pytorch/pytorch/aten/src/ATen/native/EmbeddingBag.cpp":1661, please report a bug to PyTorch.
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1,), dtype=torch.float32)
r0 = torch.ops.aten.neg_.default(x)
x1 = torch.zeros((1,), dtype=torch.float32)
y1 = torch.zeros((1,), dtype=torch.int64)
z1 = torch.zeros((1,), dtype=torch.int64)
w1 = torch.tensor([], dtype=torch.int64)
r1 = torch.ops.aten._embedding_bag_per_sample_weights_backward.default(r0, x1, y1, z1, w1, 0)
