# torch.fft.irfft2 raises RuntimeError whose text tells of its inside: MKL FFT error: Intel oneMKL DFTI ERROR: Inconsistent configuration parameters
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: a result, or an exception that says what is wrong with the arguments, not an internal assertion
# observed: RuntimeError: MKL FFT error: Intel oneMKL DFTI ERROR: Inconsistent configuration parameters
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros((2, 0), dtype=torch.int64)
r0 = torch.fft.irfft2(x, dim=0)
