# torch.cholesky_inverse: forward mode: 0.0804076863 against finite differences 0.125837137, reverse mode 0.125837137 (gradient)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: reverse mode, forward mode and finite differences agree
# observed: forward mode: 0.0804076863 against finite differences 0.125837137, reverse mode 0.125837137
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.randn((2, 2), generator=torch.Generator().manual_seed(0))
x = x.double().requires_grad_()
f = lambda x: torch.cholesky_inverse(x)
torch.autograd.gradcheck(f, (x,), check_forward_ad=False)
torch.autograd.gradcheck(f, (x,), check_forward_ad=True, check_backward_ad=False)
