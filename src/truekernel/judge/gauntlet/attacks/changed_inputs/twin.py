"""Works in place, on a copy."""


def kernel(a, b):
    scaled = a.clone()
    scaled.mul_(2.0)
    return (scaled @ b) / 2.0
