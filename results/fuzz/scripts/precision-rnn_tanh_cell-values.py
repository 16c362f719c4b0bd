# torch.rnn_tanh_cell: class of values of output 0: nan+nanj against 1-0j (float64: nan+nanj) at element 1; 3 of 16 elements differ; float64 against torch.complex6 (precision)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the float64 result, within the error of honest arithmetic
# observed: class of values of output 0: nan+nanj against 1-0j (float64: nan+nanj) at element 1; 3 of 16 elements differ; float64 against torch.complex64
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((4, 4), dtype=torch.complex64)
y = torch.zeros((4, 4), dtype=torch.complex64)
z = torch.zeros((4, 4), dtype=torch.complex64)
w = torch.zeros((4, 4), dtype=torch.complex64)
u = torch.tensor([(0.42257481813430786-infj), (inf-0.4968685209751129j), (-inf-infj), (0.422238826751709-infj), (-inf-infj), (-0.32893744111061096+infj), (0.06939096748828888-infj), (-0.047890592366456985+0.07978091388940811j), (inf-0.07495976239442825j), (-0.39665621519088745-0.2805955708026886j), (-inf-infj), (0.3152380585670471+infj), (-inf+0.014998966827988625j), (-0.1655707210302353+0.38540974259376526j), (0.2741755545139313+0.13834190368652344j), (-0.20502325892448425+infj)], dtype=torch.complex64).reshape((4, 4))
narrow = torch.rnn_tanh_cell(x, y, z, w, u)
x = x.to(torch.complex128)
y = y.to(torch.complex128)
z = z.to(torch.complex128)
w = w.to(torch.complex128)
u = u.to(torch.complex128)
wide = torch.rnn_tanh_cell(x, y, z, w, u)
print('narrow ', narrow); print('float64', wide)
torch.testing.assert_close(narrow, wide, check_dtype=False, rtol=1e-5, atol=1e-6, equal_nan=True)
