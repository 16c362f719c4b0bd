"""Memory of this process: a worker, which does one problem after the other, gives it back when it is no longer needed, and garbage is collected where there is some."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Iterator

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _LARGE = -1, -3, 16 << 20
"""glibc's mallopt: memory of that size and more goes back when it is freed. Left alone, the limit rises with use, and a worker came to hold two gigabytes of holes; at a quarter of this,
a third of a set-up went into page faults of tensors that come and go."""


def begin() -> None:
    """Before a problem: what the last one left behind goes back, and the garbage collector need not look at what is left, all modules."""
    with contextlib.suppress(OSError, AttributeError):
        for limit in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
            ctypes.CDLL("libc.so.6").mallopt(limit, _LARGE)
    gc.collect()
    gc.freeze()
    give_back()


@contextlib.contextmanager
def settled() -> Iterator[None]:
    """What a set-up made lives as long as its problem: the garbage collector need not look at it meanwhile."""
    gc.freeze()
    give_back()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.collect()


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection meanwhile: it would look again and again at millions of objects that are all in use."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def give_back() -> None:
    """Return free memory to the system, where the C library can."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
