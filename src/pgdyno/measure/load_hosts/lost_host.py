"""The load hosts to go on with after one was lost: the same, once it is back, or the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pgdyno.base import numbers
from pgdyno.base.errors import LoadHostLostError, RemoteHostError
from pgdyno.base.ports import Progress
from pgdyno.measure.arenas.arena import AfterLoss, Arena, Regained, end_without_host
from pgdyno.measure.arenas.load import Loads
from pgdyno.measure.arenas.on_load_hosts import OnLoadHosts, placed_on
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.load_hosts.load_from_cell import fewest_clients, program_of, threads_of
from pgdyno.model.cells.cell import CellHosts
from pgdyno.model.experiments.study import Study
from pgdyno.remote.cells.await_host import AWAITED_S, await_host
from pgdyno.remote.cells.load_program import LoadProgram
from pgdyno.remote.cells.reach import ReachedLoadHost, reach_again


@dataclass(frozen=True)
class AfterLostHost:
    """A cell that loads servers. ``clients`` are the fewest of a workload; ``wait`` returns the host."""

    cell: CellHosts
    program: LoadProgram
    clients: int
    allows_fewer: bool
    progress: Progress
    wait: Callable[[str, Callable[[], ReachedLoadHost], Progress], ReachedLoadHost] = await_host

    def __call__(self, arena: Arena, lost: LoadHostLostError) -> Regained:
        """Return the arena with its load from the hosts that there are.

        Raises: LoadHostLostError if the host has to be waited for, and does not come back in time.
        """
        if not (isinstance(arena, ScratchArena) and isinstance(arena.loads.placement, OnLoadHosts)):
            raise lost
        placement = arena.loads.placement
        gone = next(one for one in placement.load_hosts if one.host.name == lost.host)
        others = [one for one in placement.load_hosts if one is not gone]
        if self.allows_fewer and others:
            hosts, how = others, "its clients went to the others"
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
            fewer = "with --allow-fewer the others go on at once; " if has_others else ""
            cell = self.cell.file_name
            raise LoadHostLostError(
                f"load host {name} was lost, and not back within {numbers.duration(AWAITED_S)}",
                host=name,
                detail=error.message,
                hint=f"{fewer}before you continue, bring {name} back, or take it out of {cell}",
            ) from error


def after_loss_of(conditions: Conditions, study: Study, arena: ScratchArena, progress: Progress) -> AfterLoss:
    """Return how a study goes on after a load host was lost; one with load from here does not."""
    if conditions.cell is None:
        return end_without_host
    workloads = [conditions.workloads[name] for name in study.workloads]
    program, clients = program_of(workloads, arena), fewest_clients(workloads, study.design)
    return AfterLostHost(conditions.cell, program, clients, conditions.allows_fewer, progress)


def load_hosts_of(loads: Loads) -> tuple[str, ...]:
    """Return the names of the hosts that loads come from; none if that is this machine."""
    return _names(loads.placement.load_hosts) if isinstance(loads.placement, OnLoadHosts) else ()


def _names(hosts: Sequence[ReachedLoadHost]) -> tuple[str, ...]:
    return tuple(one.host.name for one in hosts)
