"""Room for functions that follow the nesting of a text."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from truekernel.errors import BadInputError

P = ParamSpec("P")
T = TypeVar("T")
_STACK = 512 << 20
_FRAMES = 60_000
_one_at_a_time = threading.Lock()


def deep(function: Callable[P, T]) -> Callable[P, T]:
    """`function`, called again on a large stack where the usual one is too small. It must be fit to be called twice.

    Raises BadInputError when the large one is too small as well.
    """

    @functools.wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return function(*arguments, **named)
        except RecursionError:
            if threading.current_thread().name == _NAME:
                raise
        return _on_large_stack(lambda: function(*arguments, **named))

    return call


_NAME = "deep source"


def _on_large_stack(work: Callable[[], T]) -> T:
    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            failures.append(error)

    with _one_at_a_time:
        stack, frames = threading.stack_size(_STACK), sys.getrecursionlimit()
        try:
            sys.setrecursionlimit(max(frames, _FRAMES))
            thread = threading.Thread(target=run, name=_NAME)
            thread.start()
            thread.join()
        finally:
            threading.stack_size(stack)
            sys.setrecursionlimit(frames)
    if failures and isinstance(failures[0], RecursionError):
        raise BadInputError("the source is nested too deeply: write long expressions in several steps") from None
    if failures:
        raise failures[0]
    return results[0]
