# torch.linalg.tensorsolve raises RuntimeError whose text tells of its inside: cannot create std::vector larger than max_size()
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: cannot create std::vector larger than max_size()
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1,), dtype=torch.float32)
r0 = torch.sin(x)
x1 = torch.zeros((1, 1), dtype=torch.float32)
r1 = torch.linalg.tensorsolve(r0, x1)
