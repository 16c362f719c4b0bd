"""Snapshots of process-global state: equal where nothing changed, and each kind of change shows under its name."""

import os
import random
import signal
import threading
import time

import pytest
import torch

from truekernel.judge.inside import state


def changes(action, undo):
    before = state.snapshot()
    assert before == state.snapshot()
    try:
        action()
        after = state.snapshot()
    finally:
        undo()
    return {name for name in after if before.get(name) != after[name]}


def test_nothing_changed():
    torch.rand(3).sum().item()
    assert not changes(lambda: torch.ones(3).sum().item(), lambda: None)


@pytest.mark.parametrize(
    ("module", "name", "value", "shown"),
    [
        ("torch.backends.cuda.matmul", "allow_tf32", True, "numeric.cublas_allow_tf32"),
        ("torch.backends.cudnn", "benchmark", True, "numeric.cudnn_benchmark"),
        ("torch.backends.cudnn", "deterministic", True, "numeric.cudnn_deterministic"),
        ("torch.backends.mkldnn", "deterministic", True, "numeric.mkldnn_deterministic"),
        ("torch.backends.mkldnn", "enabled", False, "numeric.mkldnn_enabled"),
        ("torch.backends.mkldnn.matmul", "fp32_precision", "bf16", "numeric.fp32_precision.mkldnn.matmul"),
        ("torch.backends.cudnn.conv", "fp32_precision", "ieee", "numeric.fp32_precision.cuda.conv"),
    ],
)
def test_a_switch(module, name, value, shown):
    import sys

    holder = sys.modules.get(module) or __import__("functools").reduce(getattr, module.split(".")[1:], torch)
    old = getattr(holder, name)
    assert old != value
    assert shown in changes(lambda: setattr(holder, name, value), lambda: setattr(holder, name, old))


@pytest.mark.parametrize(
    ("action", "undo", "shown"),
    [
        (
            lambda: torch.set_num_threads(torch.get_num_threads() + 1),
            lambda: torch.set_num_threads(torch.get_num_threads() - 1),
            "numeric.num_threads",
        ),
        (
            lambda: torch.set_default_dtype(torch.float64),
            lambda: torch.set_default_dtype(torch.float32),
            "numeric.default_dtype",
        ),
        (lambda: torch.set_flush_denormal(True), lambda: torch.set_flush_denormal(False), "numeric.flush_denormal"),
        (
            lambda: torch.use_deterministic_algorithms(True),
            lambda: torch.use_deterministic_algorithms(False),
            "numeric.deterministic_algorithms",
        ),
        (
            lambda: torch.set_autocast_enabled("cpu", True),
            lambda: torch.set_autocast_enabled("cpu", False),
            "numeric.autocast.cpu",
        ),
        (lambda: torch.manual_seed(3), lambda: None, "random.torch"),
        (random.random, lambda: None, "random.python"),
        (lambda: os.environ.update(TK_PROBE="1"), lambda: os.environ.pop("TK_PROBE"), "environment.TK_PROBE"),
        (
            lambda: signal.signal(signal.SIGUSR1, lambda *_: None),
            lambda: signal.signal(signal.SIGUSR1, signal.SIG_DFL),
            "process.handler SIGUSR1",
        ),
        (lambda: os.umask(0o77), lambda: os.umask(0o22), "process.umask"),
    ],
)
def test_other_state(action, undo, shown):
    assert shown in changes(action, undo)


def test_a_replaced_callable(monkeypatch):
    before = state.snapshot()
    monkeypatch.setattr(torch, "allclose", lambda *a, **k: True)
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    after = state.snapshot()
    found = {name for name in after if before.get(name) != after[name]}
    assert found == {"callables.torch.allclose", "callables.time.perf_counter"}


def test_other_code_under_the_same_name_shows():
    def one():
        return 1

    first = state.described(one)
    one.__code__ = (lambda: 2 + len("")).__code__.replace(co_name="one", co_firstlineno=one.__code__.co_firstlineno)
    assert state.described(one) != first


def test_a_thread_that_stays_shows():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, name="stays")
    assert changes(thread.start, lambda: (stop.set(), thread.join())) == {"interpreter.python threads"}
