"""``pgdyno cell check``: check whether the hosts of a cell are usable, with next steps if not."""

from __future__ import annotations

import ipaddress
import platform
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace

from pgdyno import __version__
from pgdyno.base import numbers
from pgdyno.base.errors import RemoteHostError
from pgdyno.base.facts import Unknown
from pgdyno.base.ports import Progress
from pgdyno.host.probes import WakeUp
from pgdyno.host.probing.run_probes import PROGRAM as WAKE_UP_PROGRAM
from pgdyno.host.probing.run_probes import unknown_wake_up, wake_up_of
from pgdyno.model.cells.cell import CellHost, CellHosts
from pgdyno.model.cells.check import (
    CellCheck,
    CellHostFacts,
    CheckedHost,
    FoundPgdyno,
    FoundPrograms,
    NetworkProbe,
    ReachedHost,
    TrialWrite,
    Trouble,
)
from pgdyno.remote.answers import FactsAnswer, Failed, WakeUpAnswer
from pgdyno.remote.cells.findings import judged
from pgdyno.remote.cells.own_address import is_this_machine
from pgdyno.remote.cells.reach import PROBE_S, measured_clock, probed
from pgdyno.remote.cells.ssh_errors import explained
from pgdyno.remote.runner import Runner, runner_here, sent_runner
from pgdyno.remote.ssh import by_hand

_TRIAL_BYTES = 16 << 20  # arbitrary: three times the driver
_GRACE_S = 10.0


def check_cell(cell: CellHosts, limit_s: float, progress: Progress) -> CellCheck:
    """Query all hosts in parallel, for ``limit_s`` each at most; then probe the load hosts' connections.

    If the server's host is this machine, it is queried without ssh: nothing else uses ssh to it then either.
    Nothing remains on a host: the runner exits with the connection, or by itself after its lifetime.
    """
    lifetime_s = limit_s + PROBE_S * len(cell.loads) + _GRACE_S
    is_here = is_this_machine(cell.server)
    progress.step(f"querying {len(cell.all)} hosts, for {numbers.duration(limit_s)} at most")
    with ExitStack() as stack:
        server_runner = runner_here(lifetime_s) if is_here else _sent(cell.server, cell, lifetime_s)
        starts = [server_runner, *(_sent(host, cell, lifetime_s) for host in cell.loads)]
        runners = [stack.enter_context(start) for start in starts]
        pool = stack.enter_context(ThreadPoolExecutor(len(runners)))
        stack.callback(_stop, runners)  # runs first on an interruption, to end the waiting threads
        for runner in runners:
            runner.limit(limit_s)
        queries = [
            pool.submit(_answer, host, runner, cell) for host, runner in zip(cell.all, runners, strict=True)
        ]
        answers = _gathered(cell.all, queries, progress)
        server, *loads = [CheckedHost(host, answer) for host, answer in zip(cell.all, answers, strict=True)]
        network = _Network(cell, server, runners[0], progress)
        loads = [network.checked(load, runner) for load, runner in zip(loads, runners[1:], strict=True)]
        server = network.server
        for runner, answer in zip(runners, answers, strict=True):
            if isinstance(answer, ReachedHost):
                runner.finish()
    return judged([server, *loads], platform.machine(), None if is_here else __version__)


def _sent(host: CellHost, cell: CellHosts, lifetime_s: float) -> AbstractContextManager[Runner]:
    return sent_runner(host, cell.ssh_config, lifetime_s)


def _stop(runners: Sequence[Runner]) -> None:
    for runner in runners:
        runner.stop()


def _gathered(
    hosts: Sequence[CellHost], queries: Sequence[Future[ReachedHost | Trouble]], progress: Progress
) -> list[ReachedHost | Trouble]:
    """Wait for all answers, and report the progress of each."""
    names = dict(zip(queries, (host.name for host in hosts), strict=True))
    for done in as_completed(queries):
        is_reached = isinstance(done.result(), ReachedHost)
        progress.step(f"{names[done]} responded" if is_reached else f"{names[done]} cannot be used")
    return [one.result() for one in queries]


def _answer(host: CellHost, runner: Runner, cell: CellHosts) -> ReachedHost | Trouble:
    try:
        runner.begin()
        clock = measured_clock(runner)
        facts = _facts(runner.facts(host))
        if host is cell.server and is_this_machine(host):  # SSH_CONNECTION is then that of the user's login
            facts = replace(facts, address=None)
        trial = TrialWrite(**runner.trial_write(_TRIAL_BYTES).model_dump())
        return ReachedHost(
            facts, clock, trial, _wake_up(runner.wake_up(WAKE_UP_PROGRAM.read_text(), host.cpus))
        )
    except RemoteHostError as error:
        return _trouble(host, runner, error, cell)


def _trouble(host: CellHost, runner: Runner, error: RemoteHostError, cell: CellHosts) -> Trouble:
    reaching = by_hand(host, cell.ssh_config)
    return explained(error.message, error.detail, reaching, has_begun=runner.has_begun)


def _facts(answer: FactsAnswer) -> CellHostFacts:
    fields = answer.model_dump()
    synchronised: bool | Unknown = (
        Unknown("the kernel does not report it") if answer.is_synchronised is None else answer.is_synchronised
    )
    programs = tuple(FoundPrograms(one.directory, one.version, one.trouble) for one in answer.postgresql)
    pgdyno = None if answer.pgdyno is None else FoundPgdyno(**answer.pgdyno.model_dump())
    replaced = {
        "cpus": tuple(answer.cpus),
        "is_synchronised": synchronised,
        "postgresql": programs,
        "pgdyno": pgdyno,
    }
    return CellHostFacts(**{**fields, **replaced})


def _wake_up(answer: WakeUpAnswer | Failed) -> WakeUp:
    if isinstance(answer, Failed):
        return unknown_wake_up(answer.error)
    source = f"CPU {answer.waker} wakes a process on CPU {answer.woken}"
    return wake_up_of(answer.idle_us, answer.busy_us, source)


class _Network:
    """Connections of load hosts to the server's host, one at a time: two would share the bandwidth."""

    def __init__(self, cell: CellHosts, server: CheckedHost, runner: Runner, progress: Progress) -> None:
        self.server = server
        """The server's host; its answer becomes a Trouble if the host is lost."""
        self._cell, self._runner, self._progress = cell, runner, progress

    def checked(self, load: CheckedHost, runner: Runner) -> CheckedHost:
        """Return a load host with the measurements of its connection."""
        if isinstance(load.answer, Trouble):
            return load
        name, server = load.host.name, self.server.host
        if isinstance(self.server.answer, ReachedHost):
            self._progress.step(f"network between {name} and {server.name}")
            try:
                return CheckedHost(load.host, load.answer, self._probe(runner, self.server.answer.facts))
            except RemoteHostError as error:  # late answers to this question may follow: ask no more
                self.server = CheckedHost(server, _trouble(server, self._runner, error, self._cell))
        return CheckedHost(load.host, load.answer, Unknown(f"{server.name} cannot be used"))

    def _probe(self, load: Runner, server: CellHostFacts) -> NetworkProbe | Unknown:
        """Measure a connection. Raises: RemoteHostError if the server's host is lost."""
        address = self._address(server)
        if isinstance(address, Unknown):
            return address
        return probed(self._runner, load, address, self._cell.probe_port, self.server.host.name)

    def _address(self, server: CellHostFacts) -> str | Unknown:
        """Return the server's address for load hosts; Unknown if its host reports no valid one."""
        named = self.server.host.address
        if named is not None:
            return named
        try:
            return str(ipaddress.ip_address(server.address or ""))
        except ValueError:
            return Unknown(f'{self.server.host.name} reports "{server.address}" as its address')
