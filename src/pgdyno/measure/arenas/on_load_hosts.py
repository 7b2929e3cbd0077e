"""Load from load hosts over the network: turns are split over all hosts, steps run on one."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path

from pgdyno.base import numbers
from pgdyno.base.errors import UsageError
from pgdyno.host.child_command import child_command
from pgdyno.load._contract import LoadRequest
from pgdyno.load.driver import ArmTarget
from pgdyno.load.driver_process import Distance, DriverJob, DriverProcess
from pgdyno.load.hosts_turns import HostsTurns
from pgdyno.load.sysbench import NAME as SYSBENCH
from pgdyno.load.sysbench import wrapper_text
from pgdyno.load.turns import Turns
from pgdyno.measure.arenas.load import Loads
from pgdyno.measure.arenas.placement import ArmsLoad
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.workload import DRIVER
from pgdyno.postgres.connection.network_access import LOAD_ROLE, NetworkAccess
from pgdyno.remote.cells.reach import ReachedLoadHost
from pgdyno.remote.load_driver import DriverSending, driver_sending, sysbench_sending

_ROUND_TRIPS = 40  # per turn: messages then take 2.5 % of it, half the share that makes it void
_STEP_S = 0.05
_LONGEST_S = 2.0  # arbitrary: disturbances last seconds; turns must be paired faster than that


def even_parts(whole: int, count: int) -> tuple[int, ...]:
    """Return ``count`` parts of a number that differ by at most one, larger ones first."""
    return tuple((whole + count - 1 - index) // count for index in range(count))


def with_long_turns(design: Design, round_trip_s: float, host: str) -> Design:
    """Return the design, with longer turns if messages to a host take too much of a turn.

    Raises: UsageError, naming the host, if such turns were too long to be paired.
    """
    turns_s = [one for one in (design.slice_s, design.writing_slice_s) if one is not None]
    least_s = math.ceil(_ROUND_TRIPS * round_trip_s / _STEP_S) * _STEP_S
    if min(turns_s) >= _ROUND_TRIPS * round_trip_s:
        return design
    if least_s > _LONGEST_S:
        raise UsageError(
            f"{host} is too far away to take turns together with other load hosts",
            detail=f"the round trip takes {numbers.short_duration(round_trip_s)}: turns would have to last "
            f"{numbers.duration(least_s)}, but the limit is {numbers.duration(_LONGEST_S)}",
            hint="use it as the only load host, leave it out, or compare whole trials: --design alternating",
        )
    writing_s = None if design.writing_slice_s is None else max(design.writing_slice_s, least_s)
    return replace(design, slice_s=max(design.slice_s, least_s), writing_slice_s=writing_s)


_SPARE_S = 900.0
"""Added to the expected duration: connecting may take ten minutes, and logs have to be transferred.

If the link stays down, the load host keeps an idle driver until then.
"""
_NOT_ENCRYPTED = {"PGSSLMODE": "disable", "PGGSSENCMODE": "disable"}
"""libpq encrypts where a server supports it; pgdyno-driver, which does not use libpq, never does."""


@dataclass(frozen=True)
class OnLoadHosts:
    """Load hosts with their numbers of threads. The driver is sent with each load; its logs are sent back."""

    load_hosts: Sequence[ReachedLoadHost]
    threads: Sequence[int]
    entrance: NetworkAccess

    def turns(self, load: ArmsLoad) -> Turns:
        """Return turns issued by all hosts together."""
        arms = [self._over_network(arm, number) for arm, number in zip(load.arms, load.order, strict=True)]
        parts = parts_of(load.request, self.load_hosts, self.threads)
        is_alone, words_s = len(self.load_hosts) == 1, max(one.words_s for one in self.load_hosts)
        return HostsTurns(
            [
                self._driver(load, arms, index, host, request)
                for index, (host, request) in enumerate(zip(self.load_hosts, parts, strict=True))
            ],
            load.order,
            0.0 if is_alone else words_s,  # twice the usual latency of a message
            load.when_ended,
        )

    def step(self, load: ArmsLoad) -> DriverJob:
        """Return the driver of a step, sent to the first host only; it writes no log."""
        first = self.load_hosts[:1]
        (request,) = parts_of(load.request, first, self.threads)
        arms = [replace(self._over_network(arm, 0), log_prefix=None) for arm in load.arms]
        return self._driver(load, arms, 0, first[0], request)

    def takes_jobs(self, generator: str) -> bool:
        """Whether the generator is pgdyno-driver or sysbench."""
        return generator in {DRIVER, SYSBENCH}

    def require_here(self) -> None:
        """Raise UsageError: load hosts are not the servers' machine."""
        names = " and ".join(one.host.name for one in self.load_hosts)
        raise UsageError(f"this load cannot be issued by {names} yet")

    def _over_network(self, here: ArmTarget, number: int) -> ArmTarget:
        """Return the same server with its network address; the arm's number names its logs there."""
        target = replace(here.target, host=self.entrance.address, user=LOAD_ROLE)
        return ArmTarget(here.name, target, Path(str(number)))

    def _driver(
        self,
        load: ArmsLoad,
        arms: Sequence[ArmTarget],
        index: int,
        there: ReachedLoadHost,
        request: LoadRequest,
    ) -> DriverJob:
        """Return the driver that is sent to a host for its part, or that host's sysbench."""
        sending = self._sending(load, there, request)
        prefixes = [prefix.with_name(f"{prefix.name}.{index}") for prefix in load.prefixes]
        output = load.process.output_file.with_suffix(f".{index}.out")
        distance = Distance(
            there.host.name, sending.first, sending.greeting, prefixes, program=_program(load.generator)
        )
        bound = partial(child_command, os.getpid())
        process = DriverProcess(sending.argv, bound, sending.environment, output, distance)
        return DriverJob(process, load.job(arms, request), prefixes)

    def _sending(self, load: ArmsLoad, there: ReachedLoadHost, request: LoadRequest) -> DriverSending:
        target, environment = (there.host, there.ssh_config), {"PGPASSWORD": self.entrance.password}
        lifetime_s = 2 * request.duration_s + _SPARE_S  # a round trip between turns; ends may be slow
        if load.generator == SYSBENCH:
            by_libpq = environment | _NOT_ENCRYPTED
            return sysbench_sending(*target, wrapper_text(), by_libpq, lifetime_s, there.owner)
        return driver_sending(*target, load.process.argv, environment, lifetime_s, there.owner)


def _program(generator: str) -> str:
    """Return the name of a generator's program, for messages."""
    return "pgdyno-driver" if generator == DRIVER else generator


def parts_of(
    request: LoadRequest, hosts: Sequence[ReachedLoadHost], threads: Sequence[int]
) -> list[LoadRequest]:
    """Return each host's part of a load: its clients, their share of the rate, its threads and CPUs.

    The first host uses the seed itself, the others the next seeds: no two hosts issue the same transactions.
    If each client has separate tables, no two hosts use the same ones.
    """
    clients = even_parts(request.clients, len(hosts))
    before = accumulate(clients, initial=0)
    return [
        replace(
            request,
            clients=of_host,
            threads=threads[index],
            seed=request.seed + index,
            rate_tps=None if request.rate_tps is None else request.rate_tps * of_host / request.clients,
            cpus=hosts[index].host.cpus,
            is_part=len(hosts) > 1,
            first_schema=None if request.first_schema is None else request.first_schema + others,
        )
        for index, (of_host, others) in enumerate(zip(clients, before, strict=False))
    ]


def placed_on(
    loads: Loads, load_hosts: Sequence[ReachedLoadHost], entrance: NetworkAccess, threads: Sequence[int]
) -> Loads:
    """Return loads with turns from load hosts; servers then have all CPUs here.

    Data sets are still loaded from here, through the Unix socket.
    """
    cpus = tuple(sorted({*loads.split.server, *loads.split.client}))
    split = replace(loads.split, server=cpus, client=(), is_isolated=True, load_host_threads=tuple(threads))
    return replace(loads, split=split, placement=OnLoadHosts(load_hosts, threads, entrance))
