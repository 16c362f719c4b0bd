# torch.special.logit: reverse mode: 120.953849 against finite differences -11.1021977, forward mode 0 (gradient)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: reverse mode, forward mode and finite differences agree
# observed: reverse mode: 120.953849 against finite differences -11.1021977, forward mode 0
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.special.ndtr(torch.randn((4, 5), generator=torch.Generator().manual_seed(0)))
x = x.double().requires_grad_()
f = lambda x: torch.special.logit(x, float('nan'))
torch.autograd.gradcheck(f, (x,), check_forward_ad=False)
torch.autograd.gradcheck(f, (x,), check_forward_ad=True, check_backward_ad=False)
