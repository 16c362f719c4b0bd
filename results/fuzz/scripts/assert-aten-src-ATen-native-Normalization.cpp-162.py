# torch.ops.aten._batch_norm_with_update_functional.default fails an internal assertion in aten/src/ATen/native/Normalization.cpp:162
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: t.defined() && t.dim() == 1 INTERNAL ASSERT FAILED at "/__w/pytorch/pytorch/aten/src/ATen/native/Normalization.cpp":162, please report a bug to PyTorch.
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros(1, dtype=torch.float32).as_strided((1, 1), (2, 2), 0).copy_(torch.zeros((1, 1), dtype=torch.float32))
y = torch.zeros(1, dtype=torch.float32).as_strided((1,), (2,), 0).copy_(torch.zeros((1,), dtype=torch.float32))
z = torch.zeros(3, dtype=torch.float32).as_strided((2, 1), (2, 2), 0).copy_(torch.zeros((2, 1), dtype=torch.float32))
w = torch.zeros(1, dtype=torch.float32).as_strided((1,), (2,), 0).copy_(torch.zeros((1,), dtype=torch.float32))
u = torch.zeros(1, dtype=torch.float32).as_strided((1,), (2,), 0).copy_(torch.zeros((1,), dtype=torch.float32))
other = torch.ops.aten._batch_norm_with_update_functional.default(x, y, z, w, u, 0.0, 0.0)
x = x.contiguous()
y = y.contiguous()
z = z.contiguous()
w = w.contiguous()
u = u.contiguous()
plain = torch.ops.aten._batch_norm_with_update_functional.default(x, y, z, w, u, 0.0, 0.0)
print('contiguous', plain); print('other     ', other)
torch.testing.assert_close(other, plain, equal_nan=True)
