# torch.ops.aten.native_group_norm_backward.default: values of output 0: 1.37617917e-10 against 0 (float64: 4.64699766e-310) at element 0; 1 of 1 elements differ; contiguous against strided (layout)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the same values for contiguous and strided arguments
# observed: values of output 0: 1.37617917e-10 against 0 (float64: 4.64699766e-310) at element 0; 1 of 1 elements differ; contiguous against strided
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros(1, dtype=torch.float32).as_strided((1,), (2,), 0).copy_(torch.zeros((1,), dtype=torch.float32))
y = torch.zeros(1, dtype=torch.float32).as_strided((1,), (2,), 0).copy_(torch.zeros((1,), dtype=torch.float32))
z = torch.zeros(3, dtype=torch.float32).as_strided((2,), (2,), 0).copy_(torch.zeros((2,), dtype=torch.float32))
w = torch.zeros(3, dtype=torch.float32).as_strided((2,), (2,), 0).copy_(torch.zeros((2,), dtype=torch.float32))
u = torch.zeros(1, dtype=torch.float32).as_strided((1,), (2,), 0).copy_(torch.zeros((1,), dtype=torch.float32))
other = torch.ops.aten.native_group_norm_backward.default(x, y, z, w, u, 1, 1, 1, 2, [True, False, True])
x = x.contiguous()
y = y.contiguous()
z = z.contiguous()
w = w.contiguous()
u = u.contiguous()
plain = torch.ops.aten.native_group_norm_backward.default(x, y, z, w, u, 1, 1, 1, 2, [True, False, True])
print('contiguous', plain); print('other     ', other)
torch.testing.assert_close(other, plain, equal_nan=True)
