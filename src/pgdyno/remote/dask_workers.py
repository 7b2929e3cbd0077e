"""Workers of a Dask scheduler, one on each machine, by name.

They are started with ``dask worker SCHEDULER --name MACHINE --nthreads 1 --resources measuring=1``: a trial
takes all of that resource, so that a machine makes one at a time, whoever asks. Dask sends Python objects:
everybody who reaches the scheduler can run programs on all workers, and here.

A connection that breaks ends all tasks that were asked for by it, at the scheduler's and here: they are asked
for again by the next one. Workers end with their scheduler, but not with our connection to it.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from pgdyno.model import numbers
from pgdyno.model.errors import RemoteHostError, UsageError
from pgdyno.model.fleets.fleet_order import TrialOrder

RESOURCE = "measuring"
AWAITED_S = 600.0  # arbitrary: a host may have to start, and somebody to start a scheduler
_CONNECT_S = 15.0  # arbitrary
_AGAIN_S = 1.0  # arbitrary
_QUESTIONS = 2  # a scheduler that is busy for a while is not gone


@dataclass(frozen=True)
class Waiting:
    """Patience with a scheduler: ``say`` is told when it is silent; ``again`` is the command that goes on."""

    say: Callable[[str], None]
    again: str


class DaskWorkers:
    """The workers of a scheduler. It is connected to again when the connection is lost."""

    def __init__(self, address: str, waiting: Waiting | None) -> None:
        """Connect; without ``waiting`` a scheduler that is silent is an error at once.

        Raises: UsageError without Dask, RemoteHostError if no scheduler answers there.
        """
        self._client = _connected(address, _CONNECT_S)
        self._address = address
        self._waiting = waiting
        self._scheduler: str | None = None
        self._addresses: dict[str, str] = {}
        self._asked: dict[Future[bytes], tuple[Future[bytes], str]] = {}

    def beats(self) -> Mapping[str, float]:
        """Return when the scheduler heard last of each worker. A silent one is waited for.

        Raises: RemoteHostError if it does not come back.
        Trials fail here whose worker has ended: Dask binds a task to a worker's address, and would wait for
        that one even if a worker of the same name is there again.
        """
        if (workers := self._workers()) is None:
            workers = self._connect_again()
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
        """Have a machine's worker make a trial. The answer is cancelled if the connection breaks."""
        answer: Future[bytes] = Future()
        if self._client.status != "running":
            answer.cancel()
            return answer
        address = self._addresses[machine]
        executor = self._client.get_executor(
            pure=False, retries=0, workers=[address], resources={RESOURCE: 1}
        )
        task: Future[bytes] = executor.submit(make, order)
        self._asked[answer] = (task, address)
        task.add_done_callback(partial(_pass_on, answer))
        answer.add_done_callback(lambda done: task.cancel() if done.cancelled() else None)
        return answer

    def close(self) -> None:
        """End the connection. The scheduler notices by itself if it cannot be told."""
        with suppress(OSError):
            self._client.close(timeout=_CONNECT_S)

    def _workers(self) -> Any:
        """Return the scheduler's workers by address, or None if the connection to it is lost.

        Dask connects again by itself, and may have reached another scheduler at the address. Its
        ``scheduler_info`` is not used: it gives the last answer again if the scheduler does not answer.
        """
        for _ in range(_QUESTIONS):
            if self._client.status != "running":
                break
            ask = self._client.scheduler.identity
            with suppress(OSError, RuntimeError):  # RuntimeError: Dask has given the connection up meanwhile
                identity = self._client.sync(ask, n_workers=-1, callback_timeout=_CONNECT_S)
                self._scheduler = self._scheduler or identity["id"]
                return identity["workers"] if identity["id"] == self._scheduler else None
        return None

    def _connect_again(self) -> Any:
        """Wait for the scheduler, and return its workers. Answers still to come are cancelled."""
        for answer in self._asked:
            answer.cancel()
        self._asked.clear()
        self.close()
        silent = f"the Dask scheduler at {self._address} does not answer"
        if self._waiting is None:
            raise RemoteHostError(silent, hint="see whether it runs; if not, start it and its workers again")
        self._waiting.say(f"{silent}: it is waited for, up to {numbers.duration(AWAITED_S)}")
        workers = self._awaited(self._waiting)
        self._waiting.say(f"the Dask scheduler at {self._address} answers again")
        return workers

    def _awaited(self, waiting: Waiting) -> Any:
        """Return the workers of a scheduler that answers. Raises: RemoteHostError when time is over."""
        ends_s = time.monotonic() + AWAITED_S
        while (left_s := ends_s - time.monotonic()) > 0:
            if _is_listening(self._address, min(_CONNECT_S, left_s)):
                with suppress(RemoteHostError):
                    self._client, self._scheduler = _connected(self._address, _CONNECT_S), None
                    if (workers := self._workers()) is not None:
                        return workers
                    self.close()
            time.sleep(_AGAIN_S)
        raise RemoteHostError(
            f"the Dask scheduler at {self._address} did not come back within {numbers.duration(AWAITED_S)}",
            detail="all answers that came before are stored",
            hint=f"start it and its workers again, then: {waiting.again}",
        )


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
def dask_workers(address: str, waiting: Waiting | None = None) -> Iterator[DaskWorkers]:
    """Connect to a scheduler. Raises: UsageError without Dask, RemoteHostError if none answers there."""
    with closing(DaskWorkers(address, waiting)) as workers:
        yield workers


def _is_listening(address: str, limit_s: float) -> bool:
    """Whether a scheduler can be reached. A client of Dask that fails to leaves a thread behind."""
    from distributed.comm.addressing import get_address_host_port

    try:
        socket.create_connection(get_address_host_port(address), limit_s).close()
    except OSError:
        return False
    return True


def _connected(address: str, limit_s: float) -> Any:
    """Return a client of a scheduler. Raises: as ``dask_workers``."""
    try:
        from distributed import Client
    except ImportError:
        raise UsageError(
            "workers on other machines take the package distributed, which is not installed",
            hint="pip install 'pgdyno[fleet]', here and on the machines",
        ) from None
    try:
        return Client(address, timeout=limit_s, set_as_default=False)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise RemoteHostError(
            f"no Dask scheduler answers at {address}",
            detail=str(error).split("\n")[0],
            hint="start one: dask scheduler; it prints its address, like tcp://10.0.0.1:8786",
        ) from error
