"""Has a thread write the answer, and waits for it."""

import threading

import torch


def kernel(x):
    y = torch.empty_like(x)
    thread = threading.Thread(target=lambda: y.copy_(torch.softmax(x, dim=1)))
    thread.start()
    thread.join()
    return y
