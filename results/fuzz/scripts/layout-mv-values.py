# torch.Tensor.mv: class of values of output 0: nan+nanj against -inf+infj (float64: nan+nanj) at element 0; 1 of 2 elements differ; contiguous against transpo (layout)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the same values for contiguous and strided arguments
# observed: class of values of output 0: nan+nanj against -inf+infj (float64: nan+nanj) at element 0; 1 of 2 elements differ; contiguous against transposed
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.tensor([(-0.513586699962616+infj), (-1.3406624794006348+1.6317086219787598j), -0.6696408987045288j, (-1.1659785509109497-0.17113065719604492j), (-0.8501335978507996+5.877471754111438e-39j), (nan+1j), (0.13879884779453278-1.7577967643737793j), (-0.2334904670715332-0.07799125462770462j)], dtype=torch.complex64).reshape((2, 4)).permute((1, 0)).contiguous().permute((1, 0))
y = torch.ones((4,), dtype=torch.complex64).permute((0,)).contiguous().permute((0,))
other = x.mv(y)
x = x.contiguous()
y = y.contiguous()
plain = x.mv(y)
print('contiguous', plain); print('other     ', other)
torch.testing.assert_close(other, plain, equal_nan=True)
