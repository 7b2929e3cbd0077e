"""Load from the load hosts of a cell: the arena, the design, and recovery from the loss of a host.

After a loss, measuring waits for the host, or continues with the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pgdyno.base import numbers
from pgdyno.base.errors import LoadHostLostError, RemoteHostError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.load.sysbench import NAME as SYSBENCH
from pgdyno.measure.arenas.arena import Arena, Regained
from pgdyno.measure.arenas.on_load_hosts import OnLoadHosts, even_parts, placed_on, with_long_turns
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.measure.conditions import Placed
from pgdyno.model.cells.cell import CellHosts
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import DRIVER, Step, TpchStep, Workload
from pgdyno.postgres.connection.network_access import HAS_CHECKPOINT_ROLE, entrance
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import DATABASE
from pgdyno.remote.cells.reach import (
    AWAITED_S,
    OWN_SYSBENCH,
    LoadProgram,
    ReachedLoadHost,
    await_host,
    reach_again,
    reach_load_hosts,
    sent_driver,
)


@dataclass(frozen=True)
class FromCell:
    """The load hosts of a cell, as the source of load for scratch servers."""

    cell: CellHosts
    allows_fewer: bool = False

    def require_issuable(self, workloads: Collection[Workload], design: Design) -> None:
        """Raise UsageError for a workload that load hosts cannot issue, or with fewer clients than hosts."""
        for workload in workloads:
            is_tpch, is_sysbench = isinstance(workload.kind, TpchStep), workload.generator == SYSBENCH
            is_known = workload.generator == DRIVER or is_sysbench
            if not is_known or is_tpch or workload.data_set.dump is not None:
                raise UsageError(
                    f"{workload.name} cannot be issued by a load host yet",
                    detail="load hosts run pgdyno-driver or sysbench, on pgdyno's own data sets",
                    hint="leave out --cell, or choose a bundled workload (pgbench-select) "
                    "without --generator",
                )
        hosts = issuing(self.cell, workloads).loads
        clients, count = fewest_clients(workloads, design), len(hosts)
        if clients < count:
            raise UsageError(
                f"{clients} client{'s' * (clients > 1)} cannot be shared by {count} load hosts",
                detail=f"each needs one: {', '.join(host.name for host in hosts)}",
                hint=f"use --clients {count} or more, or keep fewer load hosts in the file",
            )

    def placed(
        self, arena: ScratchArena, study: Study, workloads: Mapping[str, Workload], progress: Progress
    ) -> Placed:
        """Return arena and study with load from the load hosts.

        Servers then accept connections from them, and the results note their names. Turns are longer if
        messages to one of several hosts would take too much of a turn. Steps use only the first host.
        Raises: UsageError for a workload that load hosts cannot issue, or with fewer clients than load hosts,
        or for a host that is too far away; what ``reach_load_hosts`` raises.
        """
        measured = [workloads[name] for name in study.workloads]
        self.require_issuable(measured, study.design)
        _require_checkpoints(measured, [arena.installation_of(variant) for variant in study.variants])
        cell, program = issuing(self.cell, measured), program_of(measured, arena)
        load_hosts = reach_load_hosts(cell, program, progress)
        addresses = [one.address for one in load_hosts]
        by = entrance(arena.loads.scratch, load_hosts[0].server_address, addresses, DATABASE)
        clients = fewest_clients(measured, study.design)
        threads = threads_of(load_hosts, clients)
        opened = replace(arena, entrance=by, loads=placed_on(arena.loads, load_hosts, by, threads))
        design = _design(study.design, load_hosts)
        notes = [host.note(count) for host, count in zip(load_hosts, threads, strict=True)]
        notes += [*_unused(self.cell, cell), *_longer(study.design, design, load_hosts)]
        return Placed(
            opened,
            replace(study, design=design, notes=(*study.notes, *notes)),
            _names(load_hosts),
            AfterLostHost(self.cell, program, clients, self.allows_fewer, progress),
        )


@dataclass(frozen=True)
class AfterLostHost:
    """Recovery after a load host is lost: waits for it, or continues with the others.

    ``clients`` is the smallest number of clients of any workload; ``wait`` returns the host once it is back.
    """

    cell: CellHosts
    program: LoadProgram
    clients: int
    allows_fewer: bool
    progress: Progress
    wait: Callable[[str, Callable[[], ReachedLoadHost], Progress], ReachedLoadHost] = await_host

    def __call__(self, arena: Arena, lost: LoadHostLostError) -> Regained:
        """Return the arena with load from the hosts available now.

        Raises: LoadHostLostError if the host is needed and is not back in time.
        """
        if not (isinstance(arena, ScratchArena) and isinstance(arena.loads.placement, OnLoadHosts)):
            raise lost
        placement = arena.loads.placement
        gone = next(one for one in placement.load_hosts if one.host.name == lost.host)
        others = [one for one in placement.load_hosts if one is not gone]
        if self.allows_fewer and others:
            hosts, how = others, "the other hosts took over its clients"
        else:
            began_s = time.monotonic()
            back = self._awaited(gone, has_others=bool(others))
            hosts = [back if one is gone else one for one in placement.load_hosts]
            how = f"it was back after {numbers.duration(round(time.monotonic() - began_s))}"
        loads = placed_on(arena.loads, hosts, placement.entrance, threads_of(hosts, self.clients))
        return Regained(replace(arena, loads=loads), _names(hosts), how)

    def _awaited(self, gone: ReachedLoadHost, *, has_others: bool) -> ReachedLoadHost:
        name = gone.host.name
        try:
            return self.wait(name, partial(reach_again, self.cell, gone, self.program), self.progress)
        except RemoteHostError as error:
            fewer = "with --allow-fewer the others continue at once; " if has_others else ""
            cell = self.cell.file_name
            raise LoadHostLostError(
                f"load host {name} was lost and not back within {numbers.duration(AWAITED_S)}",
                host=name,
                detail=error.message,
                hint=f"{fewer}before you resume, bring {name} back or remove it from {cell}",
            ) from error


def _require_checkpoints(workloads: Iterable[Workload], installations: Iterable[Installation]) -> None:
    """Raise UsageError for steps on servers where only superusers, unlike the load, may checkpoint."""
    old = [one for one in installations if one.major < HAS_CHECKPOINT_ROLE]
    steps = [workload for workload in workloads if isinstance(workload.kind, Step)]
    if old and steps:
        raise UsageError(
            f"{steps[0].name} cannot be issued by a load host on {old[0].title}",
            detail="it ends with a checkpoint, which needs a superuser before PostgreSQL 15",
            hint="leave out --cell, or measure PostgreSQL 15 or later",
        )


def program_of(workloads: Iterable[Workload], arena: ScratchArena) -> LoadProgram:
    """Return the program that issues load on the load hosts; --generator selects one for all workloads."""
    if all(workload.generator == SYSBENCH for workload in workloads):
        return OWN_SYSBENCH
    return sent_driver(arena.loads.find_driver().program)


def issuing(cell: CellHosts, workloads: Iterable[Workload]) -> CellHosts:
    """Return the cell with the load hosts in use: only the first if any workload is a step."""
    has_steps = any(isinstance(workload.kind, Step) for workload in workloads)
    return replace(cell, loads=cell.loads[:1]) if has_steps else cell


def threads_of(load_hosts: Sequence[ReachedLoadHost], clients: int) -> list[int]:
    """Return the number of load threads of each host: at most one per client."""
    parts = even_parts(clients, len(load_hosts))
    return [min(len(host.cpus), of_host) for host, of_host in zip(load_hosts, parts, strict=True)]


def fewest_clients(workloads: Iterable[Workload], design: Design) -> int:
    """Return the smallest number of clients of any workload."""
    return min(_clients(workload) or design.clients for workload in workloads)


def _clients(workload: Workload) -> int | None:
    return workload.kind.clients if isinstance(workload.kind, Step) else workload.clients


def _design(design: Design, load_hosts: Sequence[ReachedLoadHost]) -> Design:
    """Return the design with turns long enough for several hosts. Raises: UsageError."""
    if len(load_hosts) == 1:
        return design
    farthest = max(load_hosts, key=lambda one: one.words_s)
    return with_long_turns(design, farthest.words_s, farthest.host.name)


def _unused(given: CellHosts, used: CellHosts) -> Iterator[str]:
    if unused := [f'"{host.name}"' for host in given.loads if host not in used.loads]:
        yield (
            f"not used: load host{'s' * (len(unused) > 1)} {', '.join(unused)}; a step uses only the first "
            "load host in the file"
        )


def _longer(requested: Design, used: Design, load_hosts: Sequence[ReachedLoadHost]) -> Iterator[str]:
    if used != requested:
        words = numbers.short_duration(max(one.words_s for one in load_hosts))
        yield (
            f"turns of {numbers.duration(used.slice_s)} instead of {numbers.duration(requested.slice_s)}: a "
            f"round trip to a load host takes up to {words}, and hosts may begin a turn that far apart"
        )


def _names(hosts: Sequence[ReachedLoadHost]) -> tuple[str, ...]:
    return tuple(one.host.name for one in hosts)
