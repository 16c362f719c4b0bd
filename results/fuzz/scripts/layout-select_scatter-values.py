# torch.Tensor.select_scatter: whole numbers of output 0: 9 against -2 (float64: -2) at element 1; 1 of 4 elements differ; contiguous against overlapping/contiguous (layout)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the same values for contiguous and strided arguments
# observed: whole numbers of output 0: 9 against -2 (float64: -2) at element 1; 1 of 4 elements differ; contiguous against overlapping/contiguous
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((3,), dtype=torch.int64).as_strided((1, 2, 2), (1, 1, 1))
y = torch.tensor([-6, 9, -2, -5], dtype=torch.int64).reshape((2, 2))
other = x.select_scatter(y, 0, 0)
x = x.contiguous()
y = y.contiguous()
plain = x.select_scatter(y, 0, 0)
print('contiguous', plain); print('other     ', other)
torch.testing.assert_close(other, plain, equal_nan=True)
