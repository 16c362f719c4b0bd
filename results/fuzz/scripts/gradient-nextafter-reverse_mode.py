# torch.Tensor.nextafter: reverse mode: 0 against finite differences -0.13898877, forward mode 0 (gradient)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: reverse mode, forward mode and finite differences agree
# observed: reverse mode: 0 against finite differences -0.13898877, forward mode 0
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.randn((1,), generator=torch.Generator().manual_seed(2130754467))
y = torch.randn((1,), generator=torch.Generator().manual_seed(2130754467))
x = x.double().requires_grad_()
y = y.double().requires_grad_()
f = lambda x, y: x.nextafter(y)
torch.autograd.gradcheck(f, (x, y,), check_forward_ad=False)
torch.autograd.gradcheck(f, (x, y,), check_forward_ad=True, check_backward_ad=False)
