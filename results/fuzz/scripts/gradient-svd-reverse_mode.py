# torch.linalg.svd: reverse mode: 0.976280701 against finite differences 1.41655746, forward mode 0.976280701 (gradient)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: reverse mode, forward mode and finite differences agree
# observed: reverse mode: 0.976280701 against finite differences 1.41655746, forward mode 0.976280701
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.randn((2, 1), generator=torch.Generator().manual_seed(0))
x = x.double().requires_grad_()
f = lambda x: torch.linalg.svd(x)
torch.autograd.gradcheck(f, (x,), check_forward_ad=False)
torch.autograd.gradcheck(f, (x,), check_forward_ad=True, check_backward_ad=False)
