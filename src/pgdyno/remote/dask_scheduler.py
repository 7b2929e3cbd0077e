"""Dask's scheduler: its permitted addresses, and one task per machine.

Dask sends pickled Python objects. Anyone with access to a scheduler can run programs on all of its workers,
and a worker's answer can run code here. So scheduler and workers are trusted, and others must not be able to
connect to them: this holds on a loopback address, and with TLS with certificates on both sides.

A worker has a resource named like its machine (``dask worker --resources db1=1``). A task takes the whole
resource, so it runs only on that machine, one at a time. Dask repeats a task if its worker is lost or the
task fails (``retries``, ``distributed.scheduler.allowed-failures``).
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
_SILENT_S = 60.0  # arbitrary: longer than a live scheduler is busy
_RETRIES = 2
_WORKING = ("running", "paused")  # a closing worker waits for its task
_ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})", re.ASCII)
TlsFiles: TypeAlias = "tuple[Path, Path, Path]"
"""The certificate authority's certificate, the client certificate and its key, as PEM files."""


class DaskScheduler:
    """A client of a scheduler, with its submitted tasks."""

    def __init__(self, address: str, client: Any) -> None:
        """Take a connected client."""
        self._address, self._client = address, client
        self._tasks: dict[str, Any] = {}

    def give(self, machine: str, make: Callable[[MachineOrder], bytes], order: MachineOrder) -> None:
        """Submit a task for a machine's worker; it waits until there is such a worker."""
        key = f"{machine}-{secrets.token_hex(8)}"
        self._tasks[machine] = self._client.submit(
            make, order, key=key, pure=False, retries=_RETRIES, resources={machine: 1}
        )

    def answers(self) -> Iterator[tuple[str, object]]:
        """Yield (machine, answer or error) for each finished task.

        Raises: RemoteHostError if the connection is lost: the scheduler then drops this client's tasks.
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
        """Return the machines with a worker that runs their task.

        Raises: RemoteHostError if the connection is lost.
        """
        with self._connected():
            query = self._client.scheduler.processing
            of_workers = self._client.sync(query, workers=None, callback_timeout=_SILENT_S)
        given = {key for keys in of_workers.values() for key in keys}
        return {machine for machine, task in self._tasks.items() if task.key in given}

    @contextmanager
    def _connected(self) -> Iterator[None]:
        try:
            yield
        except (OSError, CancelledError, RuntimeError) as error:  # RuntimeError: Dask closed the connection
            raise self._lost() from error

    def _lost(self) -> RemoteHostError:
        return RemoteHostError(
            f"lost the connection to the Dask scheduler at {self._address}",
            detail="answers received earlier are kept",
            hint="check that it is running, and repeat the command",
        )


@contextmanager
def dask_scheduler(address: str, tls: TlsFiles | None) -> Iterator[DaskScheduler]:
    """Connect to a scheduler; at the end, cancel unfinished tasks.

    Raises: UsageError for an invalid address, or without Dask; RefusedError for an address open to the
    network without TLS; RemoteHostError if no scheduler responds.
    """
    _require_address(address, tls)
    try:
        from distributed import Client, Security
    except ImportError:
        raise UsageError(
            "workers on other machines require the package distributed, which is not installed",
            hint="pip install 'pgdyno[fleet]', here and on the machines",
        ) from None
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # lost connections are reported below
    try:
        files = zip(("tls_ca_file", "tls_client_cert", "tls_client_key"), tls or (), strict=False)
        security = Security(**{name: str(path) for name, path in files})
        client = Client(address, security=security, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:  # TimeoutError and SSLError are OSErrors
        raise RemoteHostError(
            f"could not connect to a Dask scheduler at {address}",
            detail=str(error).split("\n")[0],
            hint=f"{_GUIDE} has the commands to start one",
        ) from error
    scheduler = DaskScheduler(address, client)
    try:
        _require_closed("the scheduler", client.scheduler_info()["address"])
        yield scheduler
    finally:
        with suppress(OSError):
            client.close(timeout=_CONNECT_S)


def task_is_wanted() -> Callable[[], bool]:
    """Return a function that returns whether the scheduler still waits for this thread's task.

    Raises: RefusedError if the worker runs as root, or is open to the network without TLS.
    """
    from distributed import get_worker

    worker = get_worker()
    if os.geteuid() == 0:
        raise RefusedError(
            "the worker must not run as root",
            detail="anyone with access to its scheduler can run programs as its user",
            hint=f"start it as {NAME}, created by pgdyno setup --account: {_GUIDE}",
        )
    _require_closed("the worker", worker.listen_address, worker.nanny)
    task = worker.state.tasks[worker.get_current_task()]
    return lambda: task.state == "executing" and worker.status.name in _WORKING


def _require_address(address: str, tls: TlsFiles | None) -> None:
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise UsageError(
            f'"{address}" is not an address of a Dask scheduler',
            hint="write tcp://127.0.0.1:PORT for this machine, tls://HOST:PORT for another machine",
        )
    if (found[1] == "tls") is (tls is None):
        raise UsageError(
            f"{address} {'requires' if tls is None else 'does not accept'} certificates",
            hint="use --tls CA CERT KEY with tls://…, where both sides show a certificate; not with tcp://…",
        )
    if found[1] == "tcp" and not _is_loopback(found[2]):
        raise RefusedError(
            f"{address} is refused: anyone with access to it could run programs on all workers, and here",
            detail="Dask sends Python objects, and without TLS it does not authenticate clients",
            hint=f"use TLS (tls://{found[2]}:{found[3]} with --tls CA CERT KEY), or a tunnel: "
            f"ssh -N -L {found[3]}:127.0.0.1:{found[3]} {found[2]}, and tcp://127.0.0.1:{found[3]}",
        )


def _require_closed(server: str, *addresses: str | None) -> None:
    """Raise RefusedError for a scheduler or worker that is open to the network without TLS."""
    for address in filter(None, addresses):
        found = _ADDRESS.fullmatch(address)  # no match for a wildcard, which may be tcp://:PORT
        if not address.startswith("tls://") and (found is None or not _is_loopback(found[2])):
            raise RefusedError(
                f"{server} listens on the network without TLS: {address}",
                detail="anyone with access to it can run programs there, on all workers, and here",
                hint=f"make it listen only on 127.0.0.1, or use TLS: {_GUIDE} has the commands",
            )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    with suppress(ValueError):
        return ip_address(host.strip("[]")).is_loopback
    return False
