"""Load from a load host: the arena for it, and the workloads that it takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pgdyno.app.arenas.arm import DATABASE
from pgdyno.app.arenas.on_load_host import placed_on
from pgdyno.app.arenas.scratch_arena import ScratchArena
from pgdyno.app.cells.reach import reach_load_host
from pgdyno.app.measuring.conditions import Conditions
from pgdyno.model.errors import UsageError
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import DRIVER, Workload
from pgdyno.model.ports import Progress
from pgdyno.server.connection.network_entrance import entrance
from pgdyno.server.process.instance import SUPERUSER


def loaded_from_cell(
    arena: ScratchArena, study: Study, conditions: Conditions, progress: Progress
) -> tuple[ScratchArena, Study]:
    """Return arena and study as they are, or with the load host of the cell that the conditions have.

    Servers let it in then, and its name is a note of the results.
    Raises: UsageError for a workload that a load host cannot issue; what ``reach_load_host`` raises.
    """
    if conditions.cell is None:
        return arena, study
    workloads = [conditions.workloads[name] for name in study.workloads]
    _require_issuable(workloads)
    load_host = reach_load_host(conditions.cell, arena.loads.find_driver().program, progress)
    by = entrance(
        arena.loads.scratch, load_host.server_address, load_host.address, user=SUPERUSER, database=DATABASE
    )
    clients = min(workload.clients or study.design.clients for workload in workloads)
    threads = min(len(load_host.cpus), clients)  # a thread for each client at most
    opened = replace(arena, entrance=by, loads=placed_on(arena.loads, load_host, by, threads))
    return opened, replace(study, notes=(*study.notes, load_host.note(threads)))


def _require_issuable(workloads: Iterable[Workload]) -> None:
    for workload in workloads:
        if workload.generator != DRIVER or workload.step or workload.data_set.dump is not None:
            raise UsageError(
                f"{workload.name} cannot be issued by a load host yet",
                detail="pgdyno-driver alone is sent there, for workloads on data sets of pgdyno's own",
                hint="leave --cell out; or choose a bundled workload (pgbench-select), without --generator",
            )
