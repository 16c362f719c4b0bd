"""Mean of squares less square of mean: right on small numbers around zero."""


def kernel(x):
    n = x.shape[1]
    mean = x.mean(dim=1)
    return ((x * x).mean(dim=1) - mean * mean) * (n / (n - 1.0))
