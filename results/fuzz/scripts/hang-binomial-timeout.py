# torch.binomial does not return
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result or an exception within seconds for arguments of this size
# observed: timeout: no end after 3 s of processor time
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.tensor([-0.40470531582832336, -2.6136131286621094, 0.2769186198711395, 0.052549105137586594, -0.48447075486183167], dtype=torch.float32)
y = torch.randn((5, 10), generator=torch.Generator().manual_seed(1365496664))
z = torch.tensor([-1.0920360088348389, -0.8608768582344055, float('nan'), -0.00999544095247984, -1.2275787591934204, 0.4964876174926758, float('nan'), 0.11667616665363312, float('nan'), float('nan')], dtype=torch.float32)
r0 = torch.addmv_(x, y, z, alpha=0.6, beta=0.2)
x1 = torch.full((1,), 0.3945307433605194, dtype=torch.float32)
r1 = torch.binomial(r0, x1)
