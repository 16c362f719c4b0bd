# torch.nn.functional.adaptive_max_pool2d_with_indices: reverse mode: -3.43875907 against finite differences -3.36529318, forward mode -3.43875907 (gradient)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: reverse mode, forward mode and finite differences agree
# observed: reverse mode: -3.43875907 against finite differences -3.36529318, forward mode -3.43875907
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.randn((2, 4, 4, 4), generator=torch.Generator().manual_seed(2047439529)).to(torch.bfloat16)
x = x.double().requires_grad_()
f = lambda x: torch.nn.functional.adaptive_max_pool2d_with_indices(x, [1, 1])
torch.autograd.gradcheck(f, (x,), check_forward_ad=False)
torch.autograd.gradcheck(f, (x,), check_forward_ad=True, check_backward_ad=False)
