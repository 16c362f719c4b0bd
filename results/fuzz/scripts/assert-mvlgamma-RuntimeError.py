# torch.Tensor.mvlgamma raises RuntimeError whose text tells of its inside: IntArrayRef contains an int that cannot be represented as a SymInt: -9223372036854775808
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: IntArrayRef contains an int that cannot be represented as a SymInt: -9223372036854775808
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1,), dtype=torch.float32)
r0 = x.mvlgamma(9223372036854775807)
