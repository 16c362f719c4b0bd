# torch.nn.functional.scaled_dot_product_attention: class of values of output 0: nan against 0 (float64: 0) at element 6; 2 of 8 elements differ; contiguous against strided (layout)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the same values for contiguous and strided arguments
# observed: class of values of output 0: nan against 0 (float64: 0) at element 6; 2 of 8 elements differ; contiguous against strided
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros(15, dtype=torch.bfloat16).as_strided((2, 2, 1, 2), (8, 4, 4, 2), 0).copy_(torch.tensor([1.5390625, -0.29296875, -2.171875, 0.5703125, -1.0859375, -1.3984375, 0.404296875, 0.83984375], dtype=torch.bfloat16).reshape((2, 2, 1, 2)))
y = torch.zeros(15, dtype=torch.bfloat16).as_strided((2, 2, 1, 2), (8, 4, 4, 2), 0).copy_(torch.tensor([3.3895313892515355e+38, -3.3895313892515355e+38, -3.3895313892515355e+38, 3.3895313892515355e+38, -3.3895313892515355e+38, -3.3895313892515355e+38, 3.3895313892515355e+38, 3.3895313892515355e+38], dtype=torch.bfloat16).reshape((2, 2, 1, 2)))
z = torch.zeros(15, dtype=torch.bfloat16).as_strided((2, 2, 1, 2), (8, 4, 4, 2), 0).copy_(torch.zeros((2, 2, 1, 2), dtype=torch.bfloat16))
other = torch.nn.functional.scaled_dot_product_attention(x, y, z)
x = x.contiguous()
y = y.contiguous()
z = z.contiguous()
plain = torch.nn.functional.scaled_dot_product_attention(x, y, z)
print('contiguous', plain); print('other     ', other)
torch.testing.assert_close(other, plain, equal_nan=True)
