# torch.native_batch_norm ends the process with SIGSEGV in at::native::batch_norm_cpu_out
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments
# observed: SIGSEGV:
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1, 1), dtype=torch.float32)
r0 = torch.native_batch_norm(x, None, None, None, None, False, 0.0, 0.0)
