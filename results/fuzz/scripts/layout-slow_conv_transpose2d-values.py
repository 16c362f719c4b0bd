# torch.ops.aten.slow_conv_transpose2d.default: values of output 0: 0.27500236 against -1.61035812 (float64: 0.27500236) at element 1; 2 of 2 elements differ; contiguous against channels_l (layout)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the same values for contiguous and strided arguments
# observed: values of output 0: 0.27500236 against -1.61035812 (float64: 0.27500236) at element 1; 2 of 2 elements differ; contiguous against channels_last
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.ones((1, 2, 1, 1), dtype=torch.float32).to(memory_format=torch.channels_last)
y = torch.tensor([1.5409960746765137, -0.293428897857666, -2.1787893772125244, 0.5684312582015991, -1.0845223665237427, -1.3985954523086548, 0.40334683656692505, 0.8380263447761536], dtype=torch.float32).reshape((2, 2, 1, 2)).to(memory_format=torch.channels_last)
other = torch.ops.aten.slow_conv_transpose2d.default(x, y, [1, 1])
x = x.contiguous()
y = y.contiguous()
plain = torch.ops.aten.slow_conv_transpose2d.default(x, y, [1, 1])
print('contiguous', plain); print('other     ', other)
torch.testing.assert_close(other, plain, equal_nan=True)
