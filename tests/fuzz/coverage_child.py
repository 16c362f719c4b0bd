"""Run a function in a forked process, since what is watched stays watched."""

import os
import pickle
import signal
import traceback

import torch


def in_child(function, *, dies=False):
    """What `function` returns in a forked process; with `dies`, the signal that ended it."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        try:
            torch.set_num_threads(1)  # the threads of the parent's pool are not in this process
            answer = (True, function())
        except BaseException:
            answer = (False, traceback.format_exc())
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    status = os.waitpid(pid, 0)[1]
    if dies:
        assert os.WIFSIGNALED(status), text
        return signal.Signals(os.WTERMSIG(status))
    assert status == 0 and text, f"child ended with {status}"
    fine, value = pickle.loads(text)
    assert fine, value
    return value
