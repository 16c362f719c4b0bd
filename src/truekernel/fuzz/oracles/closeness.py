"""What torch itself calls close: the least that two results must be apart for judges and for scripts alike."""

from __future__ import annotations

import torch

KEYWORDS = {"check_dtype": False, "equal_nan": True}
"""Of `torch.testing.assert_close`, beside its own tolerances for the dtypes that it is given."""
EXACT = {"rtol": 0, "atol": 0}


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether a script that ends with `assertion` would pass for these results."""
    try:
        torch.testing.assert_close(other, one, **KEYWORDS)  # type: ignore[arg-type]
    except AssertionError:
        return False
    return True


def assertion(other: str, one: str, *, exact: bool = False) -> str:
    """The line of a script that fails where two results, given as expressions, are not close."""
    keywords = KEYWORDS | (EXACT if exact else {})
    return f"torch.testing.assert_close({other}, {one}, {', '.join(f'{name}={value}' for name, value in keywords.items())})"
