"""Executors for `Study.optimize`: Ray through a small adapter, and a Dask cluster by its address."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from mctsvs.utils.validation import InputError, check_count


class RayExecutor(Executor):
    """Ray's workers as an executor; whoever starts Ray stops it.

    >>> ray.init(address="auto")
    >>> study.optimize(f, 600, executor=RayExecutor(), asynchronous=True)

    workers     evaluations at once; default: the CPUs of the cluster divided by those of an evaluation
    resources   what an evaluation needs, as for `ray.remote`: num_cpus, num_gpus, memory, resources, ...

    A function whose worker dies is not repeated by Ray: the study asks for it again, and counts.
    """

    def __init__(self, workers: int | None = None, **resources: Any) -> None:
        self._ray = _ray()
        if not self._ray.is_initialized():
            raise InputError("Ray is not running here: call ray.init() first, with the address of a cluster or without")
        self._remote = self._ray.remote(max_retries=0, **resources)(_call)
        each = float(resources.get("num_cpus") or 1.0)
        cpus = self._ray.cluster_resources().get("CPU", 1.0)
        self._max_workers = max(1, int(cpus // each)) if workers is None else check_count("workers", workers)
        self._functions: dict[int, tuple[Any, Any]] = {}  # a function is sent once, however often it is called

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        sent = [self._sent(argument) if callable(argument) else argument for argument in args]
        future: Future[Any] = self._remote.remote(fn, *sent, **kwargs).future()
        return future

    def _sent(self, function: Any) -> Any:
        kept = self._functions.get(id(function))
        if kept is None or kept[0] is not function:
            kept = self._functions[id(function)] = (function, self._ray.put(function))
        return kept[1]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._functions.clear()


def _call(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return fn(*args, **kwargs)


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise InputError("Ray is not installed here: pip install 'mctsvs[ray]'") from None
    return ray


def start_ray(address: str | None = None) -> RayExecutor:
    """An executor on the Ray cluster at this address, on the one this machine belongs to, or on this machine."""
    ray = _ray()
    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False, logging_level="error")
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise InputError(f"cannot reach the Ray cluster at {address!r}: {str(error).splitlines()[0]}") from None
    return RayExecutor()


def connect_dask(address: str) -> tuple[Any, Executor]:
    """The client of a Dask scheduler, to be closed, and its executor."""
    try:
        from distributed import Client
    except ImportError:
        raise InputError("Dask is not installed here: pip install 'mctsvs[dask]'") from None
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"cannot reach the Dask scheduler at {address!r}: {text}") from None
    if not client.nthreads():
        client.close()
        raise InputError(f"the Dask scheduler at {address!r} has no workers: start some with `dask worker {address}`")
    return client, client.get_executor(pure=False)
