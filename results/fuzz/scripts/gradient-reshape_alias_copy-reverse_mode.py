# torch.ops.aten._reshape_alias_copy.default: reverse mode: -1.01502063 against finite differences 0.0245914688, forward mode 0.0245914688 (gradient)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: reverse mode, forward mode and finite differences agree
# observed: reverse mode: -1.01502063 against finite differences 0.0245914688, forward mode 0.0245914688
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.randn((2,), generator=torch.Generator().manual_seed(0))
x = x.double().requires_grad_()
f = lambda x: torch.ops.aten._reshape_alias_copy.default(x, [1, 2], [0, 0])
torch.autograd.gradcheck(f, (x,), check_forward_ad=False)
torch.autograd.gradcheck(f, (x,), check_forward_ad=True, check_backward_ad=False)
