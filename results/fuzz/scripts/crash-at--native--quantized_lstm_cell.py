# torch.quantized_lstm_cell ends the process with SIGSEGV in at::native::quantized_lstm_cell
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments
# observed: SIGSEGV:
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((0,), dtype=torch.float32)
y = torch.zeros((1,), dtype=torch.float32)
z = torch.zeros((1,), dtype=torch.float32)
w = torch.zeros((1,), dtype=torch.complex64)
u = torch.zeros((1,), dtype=torch.bool)
v = torch.zeros((), dtype=torch.complex64)
a = torch.zeros((1,), dtype=torch.int64)
b = torch.zeros((1,), dtype=torch.float32)
c = torch.zeros((0,), dtype=torch.int64)
d = torch.zeros((1, 1, 0), dtype=torch.float32)
r0 = torch.quantized_lstm_cell(x, [y], z, w, u, v, a, b, c, d, 0.0, 0.0, 0.0, 0.0)
