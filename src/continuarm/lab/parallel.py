"""Running many independent tasks: processes on this machine, Dask, or Ray, all through joblib."""

import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from importlib import import_module
from signal import SIGTERM
from threading import Event, current_thread, main_thread
from typing import Any, TypeVar

from continuarm.checks import whole
from continuarm.errors import MissingExtraError, SettingsError

__all__ = ["each"]

SCHEMES = ("tcp://", "tls://")
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def each(
    function: Callable[[Item], Outcome],
    items: Sequence[Item],
    *,
    workers: int | None = None,
    cluster: str | None = None,
) -> Iterator[Outcome]:
    """The outcomes of `function` for all items, in the order in which they are done.

    Parameters
    ----------
    workers : processes, one per core by default; 1 runs in this process.
    cluster : None, `"threads"` of this process, `"local"` or `"tcp://host:port"` (Dask), `"ray"`.
    """
    workers = os.cpu_count() or 1 if workers is None else whole("workers", workers, 1)
    if cluster not in (None, "threads", "local", "ray") and not str(cluster).startswith(SCHEMES):
        raise SettingsError(
            '`cluster` must be "local", "ray", "threads" or "tcp://host:port", '
            f"but got {cluster!r}"
        )
    if not items:
        return
    if cluster in (None, "threads") and workers == 1:
        yield from map(function, items)
        return
    if cluster == "threads":
        yield from _in_threads(function, items, workers)
        return
    with ExitStack() as stack:
        joblib = _joblib()
        backend, workers = _backend(cluster, workers, stack)
        stack.enter_context(joblib.parallel_config(backend=backend, n_jobs=workers))
        if backend == "ray":
            yield from _in_portions(function, items, workers)
            return
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        stack.enter_context(_ended_by_sigterm())
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", category=UserWarning, module="joblib")
                yield from parallel(joblib.delayed(function)(item) for item in items)
        except BaseException:
            if backend == "loky":  # else idle workers wait for more, long after we are gone
                executor = import_module("joblib.externals.loky").get_reusable_executor
                executor().shutdown(wait=True, kill_workers=True)
            raise


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end us as an exception does, so that workers end, too."""
    ours = current_thread() is main_thread() and signal.getsignal(SIGTERM) is signal.SIG_DFL
    if not ours:
        yield
        return

    def end(*_: object) -> None:
        raise SystemExit(128 + SIGTERM)

    signal.signal(SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(SIGTERM, signal.SIG_DFL)


def _in_threads(
    function: Callable[..., Outcome], items: Sequence[Item], workers: int
) -> Iterator[Outcome]:
    """Compiled code runs beside others; `function` also takes what it calls now and then.

    When the caller goes away, or an item fails, what runs ends at its next call.
    """
    stop = Event()

    def go_on(_: int) -> None:
        if stop.is_set():
            raise CancelledError

    pool = ThreadPoolExecutor(min(workers, len(items)))
    try:
        runs = [pool.submit(function, item, go_on) for item in items]
        for run in as_completed(runs):
            yield run.result()
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _in_portions(
    function: Callable[[Item], Outcome], items: Sequence[Item], workers: int
) -> Iterator[Outcome]:
    """Ray's backend returns only whole lists: hand it some tasks at a time."""
    joblib = _joblib()
    size = 4 * workers
    for first in range(0, len(items), size):
        tasks = (joblib.delayed(function)(item) for item in items[first : first + size])
        yield from joblib.Parallel()(tasks)


def _backend(cluster: str | None, workers: int, stack: ExitStack) -> tuple[str, int]:
    """Connect to the cluster for as long as the stack is open; joblib's name of it."""
    if cluster is None:
        return "loky", workers
    if cluster == "ray":
        return "ray", _connect_ray(workers, stack)
    return "dask", _connect_dask(cluster, workers, stack)


def _connect_dask(cluster: str, workers: int, stack: ExitStack) -> int:
    try:
        dask: Any = import_module("distributed")
    except ImportError:
        raise MissingExtraError('Dask is needed: pip install "continuarm[cluster]"') from None
    if cluster == "local":
        local = dask.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
        )
        cluster = stack.enter_context(local).scheduler_address
    try:
        client = stack.enter_context(dask.Client(cluster, timeout="10s"))
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"a Dask scheduler must answer at {cluster}, but got {type(error).__name__}"
        ) from None
    return max(1, int(sum(client.nthreads().values())))


def _connect_ray(workers: int, stack: ExitStack) -> int:
    try:
        ray: Any = import_module("ray")
        register_ray = import_module("ray.util.joblib").register_ray
    except ImportError:
        raise MissingExtraError('Ray is needed: pip install "continuarm[ray]"') from None
    if not ray.is_initialized():
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
        stack.callback(ray.shutdown)
    register_ray()
    return int(ray.cluster_resources().get("CPU", workers))


def _joblib() -> Any:
    try:
        import joblib
    except ImportError:
        raise MissingExtraError(
            'experiments need polars and joblib: pip install "continuarm[experiments]"'
        ) from None
    return joblib
