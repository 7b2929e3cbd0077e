"""Workers of a Dask scheduler, one on each machine, by name.

They are started with ``dask worker SCHEDULER --name MACHINE --nthreads 1 --resources measuring=1``: a trial
takes all of that resource, so that a machine makes one at a time, whoever asks. Dask sends Python objects:
everybody who reaches the scheduler can run programs on all workers, and here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from pgdyno.model.errors import RemoteHostError, UsageError
from pgdyno.model.fleets.fleet_order import TrialOrder

RESOURCE = "measuring"
_CONNECT_S = 15.0  # arbitrary


class DaskWorkers:
    """The workers of a scheduler that a client is connected to."""

    def __init__(self, client: Any, address: str) -> None:
        """Use a client of ``distributed``."""
        self._client = client
        self._address = address
        self._addresses: dict[str, str] = {}
        self._asked: dict[Future[bytes], tuple[Future[bytes], str]] = {}

    def beats(self) -> Mapping[str, float]:
        """Return when the scheduler heard last of each worker. Raises: RemoteHostError if it is gone.

        Trials fail here whose worker has ended: Dask binds a task to a worker's address, and would wait for
        that one even if a worker of the same name is there again.
        """
        if self._client.status != "running":
            raise RemoteHostError(
                f"the Dask scheduler at {self._address} is gone",
                hint="start it and its workers again, then pgdyno fleet run: it goes on",
            )
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        able = {address: one for address, one in workers.items() if one["resources"].get(RESOURCE)}
        self._addresses = {str(one["name"]): address for address, one in able.items()}
        for answer, (task, address) in [*self._asked.items()]:
            if not answer.done() and address not in able:
                _settle(answer, RemoteHostError("the trial's worker has ended"))
                task.cancel()
            if answer.done():
                del self._asked[answer]
        return {str(one["name"]): one["last_seen"] for one in able.values()}

    def submit(self, machine: str, make: Callable[[TrialOrder], bytes], order: TrialOrder) -> Future[bytes]:
        """Have a machine's worker make a trial."""
        address = self._addresses[machine]
        executor = self._client.get_executor(
            pure=False, retries=0, workers=[address], resources={RESOURCE: 1}
        )
        task: Future[bytes] = executor.submit(make, order)
        answer: Future[bytes] = Future()
        self._asked[answer] = (task, address)
        task.add_done_callback(partial(_pass_on, answer))
        answer.add_done_callback(lambda done: task.cancel() if done.cancelled() else None)
        return answer


def _pass_on(answer: Future[bytes], task: Future[bytes]) -> None:
    """Give a task's outcome to whom waits for the answer; nobody may do so any more."""
    if task.cancelled():
        answer.cancel()
    else:
        _settle(answer, task.exception() or task.result())


def _settle(answer: Future[bytes], outcome: bytes | BaseException) -> None:
    with suppress(InvalidStateError):
        if isinstance(outcome, BaseException):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)


@contextmanager
def dask_workers(address: str) -> Iterator[DaskWorkers]:
    """Connect to a scheduler. Raises: UsageError without Dask, RemoteHostError if none answers there."""
    try:
        from distributed import Client
    except ImportError:
        raise UsageError(
            "workers on other machines take the package distributed, which is not installed",
            hint="pip install 'pgdyno[fleet]', here and on the machines",
        ) from None
    try:
        client = Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise RemoteHostError(
            f"no Dask scheduler answers at {address}",
            detail=str(error).split("\n")[0],
            hint="start one: dask scheduler; it prints its address, like tcp://10.0.0.1:8786",
        ) from error
    try:
        yield DaskWorkers(client, address)
    finally:
        client.close(timeout=_CONNECT_S)
