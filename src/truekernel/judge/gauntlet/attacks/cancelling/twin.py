"""The same formula around the first element of each row, in float64."""


def kernel(x):
    n = x.shape[1]
    shifted = (x - x[:, :1]).double()
    centred = shifted - shifted.mean(dim=1, keepdim=True)
    return ((centred * centred).sum(dim=1) / (n - 1.0)).float()
