# torch.empty_strided raises RuntimeError whose text tells of its inside: Storage size calculation overflowed with sizes=[2, 1, 1] and strides=[-1, 0, 0]
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: Storage size calculation overflowed with sizes=[2, 1, 1] and strides=[-1, 0, 0]
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
r0 = torch.empty_strided([2, 1, 1], [-1, 0, 0])
