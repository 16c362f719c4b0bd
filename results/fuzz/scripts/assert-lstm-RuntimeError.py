# torch.lstm raises RuntimeError whose text tells of its inside: could not create a primitive descriptor for the LSTM forward propagation primitive. Run workload with environment variab
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: could not create a primitive descriptor for the LSTM forward propagation primitive. Run workload with environment variable ONEDNN_VERBOSE=all to get additional diagnostic information.
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((1, 1, 1, 1), dtype=torch.bfloat16)
r0 = torch.nn.functional.max_pool3d_with_indices(x, 1)
x1 = torch.zeros((1, 1, 1), dtype=torch.float32)
y1 = torch.zeros((1, 1, 1), dtype=torch.float32)
z1 = torch.zeros((1,), dtype=torch.float32)
w1 = torch.zeros((1, 1, 1, 1, 1), dtype=torch.float32)
r1 = torch.lstm(r0, [x1, y1], [z1, w1], False, 1, 0.5, False, False, True)
