"""One thread around our own linear algebra, BLAS's or torch's, and as many as before afterwards.

Our matrices are small, so that more threads mostly wait for each other; and sums taken in a fixed order give the same
bits on any number of cores.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

_LOCK = threading.Lock()
_inside = 0  # how many callers are inside, in all threads: the limit belongs to the process
_limiter: Any = None


@lru_cache(maxsize=4)
def _controller(libraries: int) -> Any:
    """Finding the libraries takes milliseconds, so it is done anew only when more of them have been loaded."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """The first caller in sets the limit, the last one out lifts it."""
    global _inside, _limiter
    with _LOCK:
        _inside += 1
        if _inside == 1:
            loaded = sum(name in sys.modules for name in ("scipy.linalg", "sklearn", "torch"))
            _limiter = _controller(loaded).limit(limits=1)
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            if _inside == 0:
                _limiter.restore_original_limits()


def _forked() -> None:
    """In a child made by fork: those who were inside are not in it, and a user's function is to have all threads."""
    global _LOCK, _inside
    _LOCK = threading.Lock()
    if _inside:
        _inside = 0
        _limiter.restore_original_limits()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """The same for torch, which has threads of its own."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
