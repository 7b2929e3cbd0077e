"""Check the load hosts of a cell before they issue load on this machine's servers.

Compute the offset of another host's clock from exchanges of time stamps.

Source: F. Cristian, Probabilistic clock synchronization, Distributed Computing 3 (1989).
"""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from pgdyno.base import numbers
from pgdyno.base.errors import RemoteHostError
from pgdyno.base.facts import Unknown
from pgdyno.base.ports import Progress
from pgdyno.load import sysbench
from pgdyno.model.cells.cell import CellHost, CellHosts
from pgdyno.model.cells.check import ClockOffset, NetworkProbe
from pgdyno.remote.answers import FactsAnswer, Failed
from pgdyno.remote.cells.own_address import own_address
from pgdyno.remote.cells.ssh_errors import explained
from pgdyno.remote.load_driver import (
    DOES_NOT_RUN,
    ISSUES_LOAD,
    NOT_INSTALLED,
    SYSBENCH_DOES_NOT_RUN,
    driver_version,
    new_owner,
    sysbench_version,
)
from pgdyno.remote.runner import Runner, runner_here, sent_runner
from pgdyno.remote.ssh import by_hand


@dataclass(frozen=True)
class ClockExchange:
    """The local clock when a question was sent, the other host's clock, and the time until the answer.

    ``round_trip_ns`` is measured with the monotonic clock.
    """

    sent_ns: int
    theirs_ns: int
    round_trip_ns: int


def clock_offset(exchanges: Sequence[ClockExchange]) -> ClockOffset:
    """Return the offset from the exchange with the shortest round trip.

    The other host read its clock at an unknown time within the round trip: assuming the middle has an error
    of at most half the round trip. Shapes: at least one exchange.
    """
    best = min(exchanges, key=lambda one: one.round_trip_ns)
    twice_ns = (
        2 * (best.theirs_ns - best.sent_ns) - best.round_trip_ns
    )  # an integer: a float cannot hold ns since 1970 exactly
    return ClockOffset(
        offset_s=twice_ns / 2e9,
        error_s=best.round_trip_ns / 2 / 1e9,
        round_trip_s=best.round_trip_ns / 1e9,
        exchanges=len(exchanges),
    )


AskVersion: TypeAlias = Callable[[CellHost, Path | None, float, str], str]
"""(host, ssh_config, limit_s, owner) -> name and version, from a run on the host. Raises: RemoteHostError."""


@dataclass(frozen=True)
class LoadProgram:
    """A program that issues load. If it ``is_sent``, it runs only on this machine's type of machines."""

    name: str
    ask_version: AskVersion
    is_sent: bool


def sent_driver(program: Path) -> LoadProgram:
    """Return pgdyno-driver, from its local path."""
    return LoadProgram("pgdyno-driver", partial(driver_version, program), is_sent=True)


OWN_SYSBENCH = LoadProgram(sysbench.NAME, sysbench_version, is_sent=False)


_FACTS_S, _VERSION_S = 30.0, 120.0
_GRACE_S = 10.0
_NOEXEC = os.strerror(errno.EACCES)
_EXCHANGES = 30  # of time stamps; each takes a round trip, and the shortest one is used
_LISTEN_LIMIT_S = 10.0
_PROBE_LIMIT_S = 15.0  # of one load host's connection to the server's host: normally 1.5 s
_LATER_S = 5.0  # additional time for the server's runner, which has its own limit of 10 s
PROBE_S = _LISTEN_LIMIT_S + _PROBE_LIMIT_S + _LATER_S
"""Upper limit of a probe's duration."""


@dataclass(frozen=True)
class ReachedLoadHost:
    """A load host that can issue load: its CPUs, its address seen from here, and the server's address.

    ``round_trip_s`` is that of the network; ``words_s`` is that of a message through ssh. ``boot_id``
    identifies its running kernel, ``owner`` this experiment's loads there. ``own_program`` is the name and
    version of the host's own load generator, if it is used.
    """

    host: CellHost
    ssh_config: Path | None
    server_address: str
    address: str
    cpus: tuple[int, ...]
    round_trip_s: float
    words_s: float
    boot_id: str
    owner: str
    own_program: str | None = None

    def note(self, threads: int) -> str:
        """Return the note for readers of the results. The name is quoted, since bundles hide quoted names."""
        round_trip = numbers.short_duration(self.round_trip_s)
        issued = (
            f"threads that issue it: {threads}"
            if self.own_program is None
            else f"issued by its own {self.own_program}, unmodified, with a thread for each client"
        )
        return (
            f'load from "{self.host.name}" over the network, round trip {round_trip}; {issued}, on CPUs that '
            "sleep when they are idle"
        )


def reach_load_hosts(
    cell: CellHosts, program: LoadProgram, progress: Progress
) -> tuple[ReachedLoadHost, ...]:
    """Identify each load host, probe its network, and check that the load's program runs there.

    Hosts are checked one at a time: two would share the network. Raises: UsageError if the cell's server is
    not this machine; RemoteHostError naming a load host and a next step.
    """
    address, found = own_address(cell.server), dict[str, ReachedLoadHost]()
    for host in cell.loads:
        progress.step(f"querying {host.name}, and probing the network")
        reached = _reached(cell, host, address, program, new_owner())
        first = found.setdefault(reached.boot_id, reached)
        if first is not reached:
            raise RemoteHostError(
                f"{host.name} is the same machine as {first.host.name}: they compete for CPUs",
                hint="keep only one of them in the file",
            )
    return tuple(found.values())


def reach_again(cell: CellHosts, lost: ReachedLoadHost, program: LoadProgram) -> ReachedLoadHost:
    """Check a lost load host again, and remove the remains of its last load.

    Raises: like ``reach_load_hosts``.
    """
    found = _reached(cell, lost.host, lost.server_address, program, lost.owner)
    if found.address != lost.address:
        raise RemoteHostError(
            f"the address of {lost.host.name} has changed: {found.address} instead of {lost.address}",
            hint="servers accept only load hosts' original addresses: assign the original address again",
        )
    return found


def _reached(
    cell: CellHosts, host: CellHost, address: str, program: LoadProgram, owner: str
) -> ReachedLoadHost:
    lifetime_s = _FACTS_S + PROBE_S + _GRACE_S
    with ExitStack() as stack:
        here = stack.enter_context(runner_here(lifetime_s))
        there = stack.enter_context(sent_runner(host, cell.ssh_config, lifetime_s))
        for runner in (here, there):
            runner.limit(_FACTS_S)
        here.begin()
        try:
            there.begin()
            there.take_away(owner)
            words_s, facts = measured_clock(there).round_trip_s, there.facts(host)
            cpus = _usable(host, facts, here.facts(host), program)
            probe = _probe(here, there, address, cell, host)
        except RemoteHostError as error:
            raise _explained(host, cell.ssh_config, error, has_begun=there.has_begun) from error
    try:
        version = program.ask_version(host, cell.ssh_config, _VERSION_S, owner)
    except RemoteHostError as error:
        raise _explained(host, cell.ssh_config, error, has_begun=False) from error
    own = (probe.load_address, cpus, probe.round_trip_s, words_s, facts.boot_id)
    return ReachedLoadHost(
        host, cell.ssh_config, address, *own, owner, own_program=None if program.is_sent else version
    )


def _usable(host: CellHost, theirs: FactsAnswer, ours: FactsAnswer, program: LoadProgram) -> tuple[int, ...]:
    """Return the CPUs of a load host. Raises: RemoteHostError if it cannot issue load."""
    if theirs.boot_id == ours.boot_id:
        raise RemoteHostError(
            f"{host.name} is this machine: its load would take CPU time from the server",
            hint="use another machine, or leave out --cell",
        )
    if program.is_sent and theirs.machine != ours.machine:
        raise RemoteHostError(
            f"{program.name} does not run on {host.name}: its machine type is {theirs.machine}, not "
            f"{ours.machine}",
            hint=f"use a load host of type {ours.machine}",
        )
    missing = sorted(set(host.cpus) - set(theirs.cpus))
    if missing:
        raise RemoteHostError(
            f"hosts.toml names CPUs of {host.name} that are not available: {', '.join(map(str, missing))}",
            hint=f"correct cpus of [hosts.{host.name}]",
        )
    return host.cpus or tuple(theirs.cpus)


def _probe(here: Runner, there: Runner, address: str, cell: CellHosts, host: CellHost) -> NetworkProbe:
    found = probed(here, there, address, cell.probe_port, cell.server.name)
    if isinstance(found, Unknown):
        raise RemoteHostError(
            f"{host.name} cannot reach {cell.server.name}: {found.reason}",
            hint=f"allow connections from {host.name} to {address} in firewalls, on all ports: servers under "
            "test listen on any free port",
        )
    return found


def _explained(
    host: CellHost, ssh_config: Path | None, error: RemoteHostError, *, has_begun: bool
) -> RemoteHostError:
    """Return the error with the host's name, and with ssh's message explained."""
    if error.hint:
        return error
    words = error.detail or ""
    if why := _after(DOES_NOT_RUN, words):
        return RemoteHostError(
            f"pgdyno-driver does not run on {host.name}",
            detail=why,
            hint="it needs a C library (glibc) at least as new as this machine's: use such a load host"
            if why != _NOEXEC
            else "its directory for temporary files may be mounted noexec: pgdyno cell check names it",
        )
    if why := _after(NOT_INSTALLED, words):
        return RemoteHostError(
            f"sysbench is not installed on {host.name}",
            detail=why,
            hint="install it there (apt install sysbench), or issue the same transactions with pgdyno's own "
            "driver: --generator driver",
        )
    if why := _after(SYSBENCH_DOES_NOT_RUN, words):
        return RemoteHostError(
            f"sysbench does not run on {host.name}",
            detail=why,
            hint=f"try it by hand: {by_hand(host, ssh_config)} sysbench --version",
        )
    if ISSUES_LOAD in words:
        return RemoteHostError(
            f"{host.name} already issues another load",
            detail=f"{ISSUES_LOAD}{_after(ISSUES_LOAD, words)}",
            hint="wait until it has ended",
        )
    reaching = by_hand(host, ssh_config)
    trouble = explained(error.message, error.detail, reaching, has_begun=has_begun)
    return RemoteHostError(f"{host.name}: {trouble.said}", hint=trouble.next_step)


def _after(message: str, words: str) -> str:
    """Return the rest of the line after a message in ``words``; empty without the message."""
    return words.partition(message)[2].partition("\n")[0].strip()


def measured_clock(runner: Runner) -> ClockOffset:
    """Return the offset of a host's clock from the local clock, and the round trip of a message."""
    return clock_offset([_exchange(runner) for _ in range(_EXCHANGES)])


def _exchange(runner: Runner) -> ClockExchange:
    began_ns = time.monotonic_ns()  # read first: the time between the two readings is then in the round trip
    sent_ns = time.time_ns()
    theirs_ns = runner.clock()
    return ClockExchange(sent_ns, theirs_ns, time.monotonic_ns() - began_ns)


def probed(server: Runner, load: Runner, address: str, port: int, server_name: str) -> NetworkProbe | Unknown:
    """Measure a connection to an address of the server; port 0 means any free port.

    Raises: RemoteHostError if the server's host is lost.
    """
    server.limit(_LISTEN_LIMIT_S)
    listening = server.listen(address, port)
    if isinstance(listening, Failed):
        return Unknown(f"{server_name} cannot listen on {address}: {listening.error}")
    token = secrets.token_hex(16)
    load.limit(_PROBE_LIMIT_S)
    server.limit(_PROBE_LIMIT_S + _LATER_S)  # a slow load host must not look like its fault
    server.begin_accepting(token)
    try:
        found = load.probe(address, listening.port, token)
    except RemoteHostError as error:
        found = Failed(error=error.message)
    accepted = server.accepted()
    if isinstance(found, Failed):
        return Unknown(f"no connection to {address} port {listening.port}: {found.error}")
    if isinstance(accepted, Failed):
        return Unknown(f"the connection to {address} was lost: {accepted.error}")
    rates = (accepted.to_server_bytes_per_s, found.from_server_bytes_per_s)
    return NetworkProbe(found.round_trip_s, *rates, accepted.peer)


AWAITED_S = 600.0  # arbitrary: a server's firmware and system take minutes to start
_EVERY_S = 5.0  # arbitrary: ssh's own connection timeout is 10 s
_REPORT_EVERY_S = 15.0  # infrequent enough for a log


def await_host(
    name: str,
    reach: Callable[[], ReachedLoadHost],
    progress: Progress,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> ReachedLoadHost:
    """Return the host once it is reached; meanwhile report the error and the time waited.

    Raises: RemoteHostError, the last one, after ``AWAITED_S``.
    """
    began_s, reported_s = clock(), -_REPORT_EVERY_S
    while True:
        try:
            return reach()
        except RemoteHostError as error:
            waited_s = clock() - began_s
            if waited_s >= AWAITED_S:
                raise
            if waited_s - reported_s >= _REPORT_EVERY_S:
                progress.step(f"waiting for {name}: {error.message}")
                progress.advance(waited_s, AWAITED_S)
                reported_s = waited_s
        sleep(_EVERY_S)
