# torch.lstm_cell: class of values of output 1: nan+nanj against 1+0j (float64: 1+0j) at element 5; 1 of 16 elements differ; contiguous against strided (layout)
# capability AVX512, python 3.11.7, torch 2.13.0+cpu
# expected: the same values for contiguous and strided arguments
# observed: class of values of output 1: nan+nanj against 1+0j (float64: 1+0j) at element 5; 1 of 16 elements differ; contiguous against strided
import torch
torch.set_num_threads(1); torch.manual_seed(20210)
x = torch.zeros(31, dtype=torch.complex64).as_strided((8, 2), (4, 2), 0).copy_(torch.tensor([(-0.7806169986724854-1.010218858718872j), (2.274430990219116-0.5799311995506287j), (2.1279163360595703-1.371303915977478j), (0.6933206915855408+0.08574602007865906j), (0.08871641755104065-0.790080726146698j), (0.12949170172214508+0.1776537150144577j), (-0.5112714171409607-0.06808307021856308j), (0.18069608509540558-0.7396469116210938j), (-1.3522249460220337-0.4478483498096466j), (-1.5669517517089844-1.030598521232605j), (1.646785020828247+1.1446336507797241j), (-0.32501474022865295-0.8880922794342041j), (-1.266021490097046+0.22029803693294525j), (-0.6077475547790527+1.563244104385376j), (-0.606423020362854+0.17091529071331024j), (0.42448949813842773+0.4820699095726013j)], dtype=torch.complex64).reshape((8, 2)))
y = torch.zeros(31, dtype=torch.complex64).as_strided((8, 2), (4, 2), 0).copy_(torch.zeros((8, 2), dtype=torch.complex64))
z = torch.zeros(31, dtype=torch.complex64).as_strided((8, 2), (4, 2), 0).copy_(torch.zeros((8, 2), dtype=torch.complex64))
w = torch.zeros(31, dtype=torch.complex64).as_strided((8, 2), (4, 2), 0).copy_(torch.tensor([(3.4028234663852886e+38+3.4028234663852886e+38j), (3.4028234663852886e+38+3.4028234663852886e+38j), (-3.4028234663852886e+38+3.4028234663852886e+38j), (-3.4028234663852886e+38+3.4028234663852886e+38j), (-3.4028234663852886e+38+3.4028234663852886e+38j), (3.4028234663852886e+38+3.4028234663852886e+38j), (-3.4028234663852886e+38+3.4028234663852886e+38j), (3.4028234663852886e+38-3.4028234663852886e+38j), (-3.4028234663852886e+38-3.4028234663852886e+38j), (-3.4028234663852886e+38-3.4028234663852886e+38j), (-3.4028234663852886e+38+3.4028234663852886e+38j), (-3.4028234663852886e+38+3.4028234663852886e+38j), (3.4028234663852886e+38-3.4028234663852886e+38j), (-3.4028234663852886e+38-3.4028234663852886e+38j), (3.4028234663852886e+38+3.4028234663852886e+38j), (-3.4028234663852886e+38-3.4028234663852886e+38j)], dtype=torch.complex64).reshape((8, 2)))
u = torch.zeros(31, dtype=torch.complex64).as_strided((8, 2), (4, 2), 0).copy_(torch.zeros((8, 2), dtype=torch.complex64))
other = torch.lstm_cell(x, [y, z], w, u)
x = x.contiguous()
y = y.contiguous()
z = z.contiguous()
w = w.contiguous()
u = u.contiguous()
plain = torch.lstm_cell(x, [y, z], w, u)
print('contiguous', plain); print('other     ', other)
torch.testing.assert_close(other, plain, equal_nan=True)
