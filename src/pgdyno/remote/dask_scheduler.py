"""Dask's scheduler: the addresses at which it may be, and a task for each machine.

Dask sends pickled Python objects. So whoever reaches a scheduler runs programs on all of its workers, and a
worker's answer runs here: all of them are trusted, and nobody else may reach them. That holds within one
machine, and where TLS asks both sides for a certificate.

A worker has a resource called like its machine (``dask worker --resources db1=1``), and a task takes all of
it: it waits for that machine alone, and measures nothing beside another one. Dask makes a task again whose
worker was lost, or that failed (``retries``, ``distributed.scheduler.allowed-failures``).
"""

from __future__ import annotations

import logging
import os
import re
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeAlias

from pgdyno.base.errors import RefusedError, RemoteHostError, UsageError
from pgdyno.host.own_account import NAME
from pgdyno.model.experiments.fleet import MachineOrder

_GUIDE = "docs/guides/fleets.md"
_CONNECT_S = 15.0  # arbitrary
_SILENT_S = 60.0  # arbitrary: a scheduler that is busy for a while is not gone
_RETRIES = 2
_WORKING = ("running", "paused")  # a worker that ends waits for its task
_ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})", re.ASCII)
TlsFiles: TypeAlias = "tuple[Path, Path, Path]"
"""The authority's certificate, our own, and its key, in PEM format."""


class DaskScheduler:
    """A client of a scheduler, with the tasks that it was given."""

    def __init__(self, address: str, client: Any) -> None:
        """Take a client that is connected."""
        self._address, self._client = address, client
        self._tasks: dict[str, Any] = {}

    def give(self, machine: str, make: Callable[[MachineOrder], bytes], order: MachineOrder) -> None:
        """Have a machine's worker make an answer, whenever there is one."""
        key = f"{machine}-{secrets.token_hex(8)}"
        self._tasks[machine] = self._client.submit(
            make, order, key=key, pure=False, retries=_RETRIES, resources={machine: 1}
        )

    def answers(self) -> Iterator[tuple[str, object]]:
        """Yield the machines that have answered, or have failed, and their answer or error.

        Raises: RemoteHostError if the connection is lost: the scheduler forgets what it was asked for by it.
        """
        for machine, task in [*self._tasks.items()]:
            if task.status in {"cancelled", "lost"}:
                raise self._lost()
            if task.done():
                with self._connected():
                    answer = task.exception(_SILENT_S) or task.result(_SILENT_S)
                del self._tasks[machine]
                yield machine, answer

    def measuring(self) -> set[str]:
        """Return the machines whose workers have their task.

        Raises: RemoteHostError if the connection is lost.
        """
        with self._connected():
            ask = self._client.scheduler.processing
            of_workers = self._client.sync(ask, workers=None, callback_timeout=_SILENT_S)
        given = {key for keys in of_workers.values() for key in keys}
        return {machine for machine, task in self._tasks.items() if task.key in given}

    @contextmanager
    def _connected(self) -> Iterator[None]:
        try:
            yield
        except (OSError, CancelledError, RuntimeError) as error:  # RuntimeError: Dask has given it up
            raise self._lost() from error

    def _lost(self) -> RemoteHostError:
        return RemoteHostError(
            f"the connection to the Dask scheduler at {self._address} is lost",
            detail="the answers that came before are kept",
            hint="see whether it runs, and start the same command again",
        )


@contextmanager
def dask_scheduler(address: str, tls: TlsFiles | None) -> Iterator[DaskScheduler]:
    """Connect to a scheduler. At the end it is told to drop the tasks that are not done.

    Raises: UsageError for what is no address, and without Dask; RefusedError for one that the network
    reaches; RemoteHostError if no scheduler answers there.
    """
    _require_address(address, tls)
    try:
        from distributed import Client, Security
    except ImportError:
        raise UsageError(
            "workers on other machines take the package distributed, which is not installed",
            hint="pip install 'pgdyno[fleet]', here and on the machines",
        ) from None
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # what is lost is said by us
    try:
        files = zip(("tls_ca_file", "tls_client_cert", "tls_client_key"), tls or (), strict=False)
        security = Security(**{name: str(path) for name, path in files})
        client = Client(address, security=security, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:  # TimeoutError and SSLError are OSErrors
        raise RemoteHostError(
            f"could not connect to a Dask scheduler at {address}",
            detail=str(error).split("\n")[0],
            hint=f"{_GUIDE} has the commands that start one",
        ) from error
    scheduler = DaskScheduler(address, client)
    try:
        _require_closed("the scheduler", client.scheduler_info()["address"])
        yield scheduler
    finally:
        with suppress(OSError):
            client.close(timeout=_CONNECT_S)


def task_is_wanted() -> Callable[[], bool]:
    """Return whether the scheduler still waits for the task that this thread makes.

    Raises: RefusedError where its worker may not work: as root, or where the network reaches it without TLS.
    """
    from distributed import get_worker

    worker = get_worker()
    if os.geteuid() == 0:
        raise RefusedError(
            "the worker runs as root, which it may not",
            detail="who reaches its scheduler runs programs as its user",
            hint=f"start it as {NAME}, which pgdyno setup --account makes: {_GUIDE}",
        )
    _require_closed("the worker", worker.listen_address, worker.nanny)
    task = worker.state.tasks[worker.get_current_task()]
    return lambda: task.state == "executing" and worker.status.name in _WORKING


def _require_address(address: str, tls: TlsFiles | None) -> None:
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise UsageError(
            f'"{address}" is no address of a Dask scheduler',
            hint="write tcp://127.0.0.1:PORT for one of this machine, tls://HOST:PORT for another one",
        )
    if (found[1] == "tls") is (tls is None):
        raise UsageError(
            f"{address} {'takes' if tls is None else 'does not take'} certificates",
            hint="tls://… goes with --tls CA CERT KEY, since both sides show a certificate; tcp://… without",
        )
    if found[1] == "tcp" and not _is_loopback(found[2]):
        raise RefusedError(
            f"{address} is refused: who reaches it could run programs on all workers, and here",
            detail="Dask sends Python objects, and asks nobody who he is without TLS",
            hint=f"use TLS (tls://{found[2]}:{found[3]} with --tls CA CERT KEY), or a tunnel: "
            f"ssh -N -L {found[3]}:127.0.0.1:{found[3]} {found[2]}, and tcp://127.0.0.1:{found[3]}",
        )


def _require_closed(server: str, *addresses: str | None) -> None:
    """Raise RefusedError for a scheduler or worker that the network reaches without TLS."""
    for address in filter(None, addresses):
        found = _ADDRESS.fullmatch(address)  # of a wildcard it is tcp://:PORT as well
        if not address.startswith("tls://") and (found is None or not _is_loopback(found[2])):
            raise RefusedError(
                f"{server} listens to the network without TLS: {address}",
                detail="who reaches it runs programs there, on all workers, and here",
                hint=f"let it listen on 127.0.0.1 alone, or use TLS: {_GUIDE} has the commands",
            )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    with suppress(ValueError):
        return ip_address(host.strip("[]")).is_loopback
    return False
