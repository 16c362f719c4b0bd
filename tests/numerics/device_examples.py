"""Outputs that are hard to judge, for comparisons of the device's statistics with the CPU's."""

import math

import torch

from truekernel.model import ITEM_BYTES
from truekernel.numerics.expected import Expected
from truekernel.numerics.formats import FORMATS, TORCH_DTYPES, from_bytes

TOLERANCES = ((1e-2, 1e-2), (1e-4, 1e-4), (1e-3, 1e-3))
INCOMPARABLE = ((0.0, 0.5), (0.25, 0.0), (0.0, 0.0))
"""Tolerances of which none is the tightest."""
DTYPES = tuple(TORCH_DTYPES)
SPECIAL = (
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    math.nan,
    1.0,
    -1.0,
    2.0,
    1e-40,
    -1e-45,
    65504.0,
    6e-8,
    3.4e38,
    -3.4e38,
    1e300,
    5e-324,
)


def random_bits(generator, dtype, count):
    """`count` items of random bits, an eighth of them poison."""
    data = torch.randint(0, 256, (count, ITEM_BYTES[dtype]), dtype=torch.uint8, generator=generator)
    data[torch.randint(0, 8, (count,), generator=generator) == 0] = 0xFF
    return from_bytes(data.numpy().tobytes(), dtype, (count,))


def published_values(generator, dtype, count):
    """Ordinary numbers of several sizes, an eighth of them special."""
    if dtype not in FORMATS:
        return torch.randint(0, 50, (count,), generator=generator).to(TORCH_DTYPES[dtype])
    exponents = torch.randint(-12, 5, (count,), generator=generator).double()
    values = torch.randn(count, dtype=torch.float64, generator=generator) * 2.0**exponents
    special = torch.tensor(SPECIAL, dtype=torch.float64)[torch.randint(0, len(SPECIAL), (count,), generator=generator)]
    chosen = torch.randint(0, 8, (count,), generator=generator) == 0
    return torch.where(chosen, special, values).to(TORCH_DTYPES[dtype])


def near(generator, published, style):
    """An output for a published value. Styles: equal, close (a few units in the last place), edge (at the edges of tolerances), wrong, bits."""
    dtype = next(name for name, known in TORCH_DTYPES.items() if known == published.dtype)
    count = published.numel()
    if style == "bits":
        return random_bits(generator, dtype, count)
    if style == "equal":
        return published.clone()
    wide = published.double()
    signs = torch.randint(-1, 2, (count,), generator=generator).double()
    if style == "close":
        step = FORMATS[dtype].unit_roundoff if dtype in FORMATS else 0.0
        moved = wide * (1 + signs * 2 * step)
    elif style == "edge":
        pick = torch.randint(0, 6, (count,), generator=generator)
        pairs = torch.tensor(TOLERANCES + INCOMPARABLE, dtype=torch.float64)[pick]
        jitter = torch.tensor([1.0, 1 - 1e-7, 1 + 1e-7, 1.5], dtype=torch.float64)
        factor = jitter[torch.randint(0, 4, (count,), generator=generator)]
        moved = wide + signs * (pairs[:, 0] + pairs[:, 1] * wide.abs()) * factor
    else:
        moved = wide.flip(0) * 1.5 + 1
    if dtype not in FORMATS:
        moved = moved.nan_to_num().clamp(0, 100)
    return moved.to(published.dtype)


STYLES = ("equal", "close", "edge", "wrong", "bits")


def example(seed, dtype, count, style, *, spread=True):
    """An output and what it is compared with: truth beside the published value, scales and spreads of all sizes, zeros among them."""
    generator = torch.Generator().manual_seed(seed)
    published = random_bits(generator, dtype, count) if style == "bits" else published_values(generator, dtype, count)
    output = near(generator, published, style)
    wide = published.double()
    truth = wide * (1 + torch.randint(-1, 2, (count,), generator=generator) * 1e-9)
    sizes = torch.tensor([0.0, 1e-300, 1e-9, 1e-6, 1e-3, 1.0, 1e9], dtype=torch.float64)
    scale = sizes[torch.randint(0, len(sizes), (count,), generator=generator)]
    panel = sizes[torch.randint(0, len(sizes), (count,), generator=generator)] if spread else None
    return output, Expected("y", dtype, "value", published, truth, scale, panel)


def index_example(seed, rows, length, dtype="int64"):
    """Indices into a table, some outside of it, with ties, NaN and infinities among its values."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.randint(-2, 3, (rows, length), generator=generator).double()
    table[torch.randint(0, 9, (rows, length), generator=generator) == 0] = math.nan
    table[torch.randint(0, 9, (rows, length), generator=generator) == 0] = math.inf
    truth = torch.randint(0, length, (rows,), generator=generator)
    low = 0 if dtype == "uint8" else -2
    output = torch.randint(low, length + 2, (rows,), generator=generator).to(TORCH_DTYPES[dtype])
    scale = torch.where(torch.arange(rows) % 3 == 0, 0.0, 0.5).double()
    return output, Expected("i", dtype, "index", truth.to(output.dtype), truth.double(), scale, None, table)
