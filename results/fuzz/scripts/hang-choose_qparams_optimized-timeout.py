# torch.choose_qparams_optimized does not return
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result or an exception within seconds for arguments of this size
# observed: timeout: no end after 3 s of processor time
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.tensor([-3.021964598045827e-39, 9.182778901643743e-40, 4.956771018902246e-40, -5.606314896070728e-40, -5.0659601952424354e-40, -1.8053012193804478e-39, 3.7145899952015116e-40, -7.998653673319986e-40, 6.284683482650372e-40, -8.729388783511448e-40, 1.7476896356166616e-39, -1.456532044594644e-39, 1.0785640137077041e-39, -2.3469577264820982e-39, 2.7021350391452594e-39, -2.522187296848988e-39], dtype=torch.float32).reshape((2, 2, 4, 1))
r0 = torch.choose_qparams_optimized(x, 3, -2147483648, 2.0, 3)
