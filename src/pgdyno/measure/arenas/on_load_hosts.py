"""Loads from load hosts, over the network: turns of all, each its part; steps of one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path

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
from pgdyno.measure.design.several_hosts import even_parts
from pgdyno.model.experiments.workload import DRIVER
from pgdyno.postgres.connection.network_entrance import LOAD_ROLE, NetworkEntrance
from pgdyno.remote.cells.reach import ReachedLoadHost
from pgdyno.remote.load_driver import DriverSending, driver_sending
from pgdyno.remote.load_sysbench import sysbench_sending

_SPARE_S = 900.0
"""Beyond what a load takes: connecting may take ten minutes, and logs have to come here.

When the link is cut for good, the load host keeps an idle driver until then.
"""
_NOT_ENCRYPTED = {"PGSSLMODE": "disable", "PGGSSENCMODE": "disable"}
"""libpq encrypts where a server can; pgdyno-driver, which has no libpq, never does."""


@dataclass(frozen=True)
class OnLoadHosts:
    """Load hosts, and how many threads each has. The driver is sent with each load; its logs come back."""

    load_hosts: Sequence[ReachedLoadHost]
    threads: Sequence[int]
    entrance: NetworkEntrance

    def turns(self, load: ArmsLoad) -> Turns:
        """Return turns that all hosts issue together."""
        arms = [self._far(arm, number) for arm, number in zip(load.arms, load.order, strict=True)]
        parts = parts_of(load.request, self.load_hosts, self.threads)
        is_alone, words_s = len(self.load_hosts) == 1, max(one.words_s for one in self.load_hosts)
        return HostsTurns(
            [
                self._driver(load, arms, index, host, request)
                for index, (host, request) in enumerate(zip(self.load_hosts, parts, strict=True))
            ],
            load.order,
            0.0 if is_alone else words_s,  # twice what a word usually takes
            load.when_ended,
        )

    def step(self, load: ArmsLoad) -> DriverJob:
        """Return the driver of a step, sent to the first host alone; nothing is logged there."""
        first = self.load_hosts[:1]
        (request,) = parts_of(load.request, first, self.threads)
        arms = [replace(self._far(arm, 0), log_prefix=None) for arm in load.arms]
        return self._driver(load, arms, 0, first[0], request)

    def takes_jobs(self, generator: str) -> bool:
        """Whether it is our driver, or sysbench."""
        return generator in {DRIVER, SYSBENCH}

    def require_here(self) -> None:
        """Raise UsageError."""
        names = " and ".join(one.host.name for one in self.load_hosts)
        raise UsageError(f"this load cannot be issued by {names} yet")

    def _far(self, here: ArmTarget, number: int) -> ArmTarget:
        """Return the same server by the network; the arm's number is the name of its logs there."""
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
        """Return the same driver, sent to a host for its part; or that host's sysbench."""
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
        way, environment = (there.host, there.ssh_config), {"PGPASSWORD": self.entrance.password}
        lifetime_s = 2 * request.duration_s + _SPARE_S  # turns have gaps of a round trip, ends may be slow
        if load.generator == SYSBENCH:
            by_libpq = environment | _NOT_ENCRYPTED
            return sysbench_sending(*way, wrapper_text(), by_libpq, lifetime_s, there.owner)
        return driver_sending(*way, load.process.argv, environment, lifetime_s, there.owner)


def _program(generator: str) -> str:
    """Return the name of a generator's program, for messages."""
    return "pgdyno-driver" if generator == DRIVER else generator


def parts_of(
    request: LoadRequest, hosts: Sequence[ReachedLoadHost], threads: Sequence[int]
) -> list[LoadRequest]:
    """Return each host's part of a load: its clients, their part of the rate, its threads and CPUs.

    The first draws by the seed itself, others by the next ones: no two hosts issue the same transactions.
    Where each client has tables of its own, no two hosts work on the same ones.
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
    loads: Loads, load_hosts: Sequence[ReachedLoadHost], entrance: NetworkEntrance, threads: Sequence[int]
) -> Loads:
    """Return loads whose turns come from load hosts, so that servers have all CPUs here.

    Data sets are loaded from here, by the socket.
    """
    cpus = tuple(sorted({*loads.split.server, *loads.split.client}))
    split = replace(loads.split, server=cpus, client=(), is_isolated=True, load_host_threads=tuple(threads))
    return replace(loads, split=split, placement=OnLoadHosts(load_hosts, threads, entrance))
