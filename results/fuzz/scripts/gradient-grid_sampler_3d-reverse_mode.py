# torch.grid_sampler_3d: reverse mode: -3.6265503 against finite differences -3.94831425 (gradient)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: reverse mode, forward mode and finite differences agree
# observed: reverse mode: -3.6265503 against finite differences -3.94831425
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.randn((1, 1, 2, 2, 1), generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
y = torch.randn((1, 1, 1, 32, 3), generator=torch.Generator().manual_seed(1411858594)).to(torch.bfloat16)
x = x.double().requires_grad_()
y = y.double().requires_grad_()
f = lambda x, y: torch.grid_sampler_3d(x, y, 0, 0, False)
torch.autograd.gradcheck(f, (x, y,), check_forward_ad=False)
torch.autograd.gradcheck(f, (x, y,), check_forward_ad=True, check_backward_ad=False)
