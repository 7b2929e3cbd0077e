"""Load from load hosts: the arena for it, the design, and the workloads that they take."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from pgdyno.base import numbers
from pgdyno.base.errors import UsageError
from pgdyno.base.ports import Progress
from pgdyno.load.sysbench import NAME as SYSBENCH
from pgdyno.measure.arenas.on_load_hosts import placed_on
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.design.several_hosts import even_parts, with_long_turns
from pgdyno.model.cells.cell import CellHosts
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import DRIVER, Step, TpchStep, Workload
from pgdyno.postgres.connection.network_entrance import HAS_CHECKPOINT_ROLE, entrance
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import DATABASE
from pgdyno.remote.cells.load_program import OWN_SYSBENCH, LoadProgram, sent_driver
from pgdyno.remote.cells.reach import ReachedLoadHost, reach_load_hosts


def loaded_from_cell(
    arena: ScratchArena, study: Study, conditions: Conditions, progress: Progress
) -> tuple[ScratchArena, Study]:
    """Return arena and study as they are, or with the load hosts of the cell that the conditions have.

    Servers let them in then, and their names are notes of the results. Turns are longer where words to one of
    several hosts would take too much of them. Steps have their load from the first host alone.
    Raises: UsageError for a workload that load hosts cannot issue, or one of fewer clients than there are
    hosts, or for a host that is too far away; what ``reach_load_hosts`` raises.
    """
    if conditions.cell is None:
        return arena, study
    workloads = [conditions.workloads[name] for name in study.workloads]
    require_issuable(conditions.cell, workloads, study.design)
    _require_checkpoints(workloads, [arena.installation_of(variant) for variant in study.variants])
    cell = issuing(conditions.cell, workloads)
    load_hosts = reach_load_hosts(cell, program_of(workloads, arena), progress)
    addresses = [one.address for one in load_hosts]
    by = entrance(arena.loads.scratch, load_hosts[0].server_address, addresses, DATABASE)
    threads = threads_of(load_hosts, fewest_clients(workloads, study.design))
    opened = replace(arena, entrance=by, loads=placed_on(arena.loads, load_hosts, by, threads))
    design = _design(study.design, load_hosts)
    notes = [host.note(count) for host, count in zip(load_hosts, threads, strict=True)]
    notes += [*_unused(conditions.cell, cell), *_longer(study.design, design, load_hosts)]
    return opened, replace(study, design=design, notes=(*study.notes, *notes))


def require_issuable(cell: CellHosts, workloads: Collection[Workload], design: Design) -> None:
    """Raise UsageError for a workload that load hosts cannot issue, or of fewer clients than they are."""
    for workload in workloads:
        is_tpch, is_sysbench = isinstance(workload.kind, TpchStep), workload.generator == SYSBENCH
        is_known = workload.generator == DRIVER or is_sysbench
        if not is_known or is_tpch or workload.data_set.dump is not None:
            raise UsageError(
                f"{workload.name} cannot be issued by a load host yet",
                detail="pgdyno-driver or sysbench issues load there, on data sets of pgdyno's own",
                hint="leave --cell out; or choose a bundled workload (pgbench-select), without --generator",
            )
    hosts = issuing(cell, workloads).loads
    clients, count = fewest_clients(workloads, design), len(hosts)
    if clients < count:
        raise UsageError(
            f"{clients} client{'s' * (clients > 1)} cannot be shared by {count} load hosts",
            detail=f"each needs one: {', '.join(host.name for host in hosts)}",
            hint=f"--clients {count} or more; or keep fewer load hosts in the file",
        )


def _require_checkpoints(workloads: Iterable[Workload], installations: Iterable[Installation]) -> None:
    """Raise UsageError for steps on servers where a superuser alone, which load is not, does checkpoints."""
    old = [one for one in installations if one.major < HAS_CHECKPOINT_ROLE]
    steps = [workload for workload in workloads if isinstance(workload.kind, Step)]
    if old and steps:
        raise UsageError(
            f"{steps[0].name} cannot be issued by a load host on {old[0].title}",
            detail="it ends with a checkpoint, which before PostgreSQL 15 takes a superuser",
            hint="leave --cell out, or measure PostgreSQL 15 or later",
        )


def program_of(workloads: Iterable[Workload], arena: ScratchArena) -> LoadProgram:
    """Return the program that issues workloads on load hosts; --generator has chosen it for all."""
    if all(workload.generator == SYSBENCH for workload in workloads):
        return OWN_SYSBENCH
    return sent_driver(arena.loads.find_driver().program)


def issuing(cell: CellHosts, workloads: Iterable[Workload]) -> CellHosts:
    """Return the cell with the load hosts that are used: the first alone if a workload is a step."""
    has_steps = any(isinstance(workload.kind, Step) for workload in workloads)
    return replace(cell, loads=cell.loads[:1]) if has_steps else cell


def threads_of(load_hosts: Sequence[ReachedLoadHost], clients: int) -> list[int]:
    """Return the number of threads that issue load on each host: one for each client at most."""
    parts = even_parts(clients, len(load_hosts))
    return [min(len(host.cpus), of_host) for host, of_host in zip(load_hosts, parts, strict=True)]


def fewest_clients(workloads: Iterable[Workload], design: Design) -> int:
    """Return the number of clients of the workload that has fewest."""
    return min(_clients(workload) or design.clients for workload in workloads)


def _clients(workload: Workload) -> int | None:
    return workload.kind.clients if isinstance(workload.kind, Step) else workload.clients


def _design(design: Design, load_hosts: Sequence[ReachedLoadHost]) -> Design:
    """Return the design with turns that several hosts can take together. Raises: UsageError."""
    if len(load_hosts) == 1:
        return design
    farthest = max(load_hosts, key=lambda one: one.words_s)
    return with_long_turns(design, farthest.words_s, farthest.host.name)


def _unused(given: CellHosts, used: CellHosts) -> Iterator[str]:
    if unused := [f'"{host.name}"' for host in given.loads if host not in used.loads]:
        yield (
            f"not used: load host{'s' * (len(unused) > 1)} {', '.join(unused)}; a step has its load from one "
            "host, the first in the file"
        )


def _longer(asked: Design, used: Design, load_hosts: Sequence[ReachedLoadHost]) -> Iterator[str]:
    if used != asked:
        words = numbers.short_duration(max(one.words_s for one in load_hosts))
        yield (
            f"turns of {numbers.duration(used.slice_s)} instead of {numbers.duration(asked.slice_s)}: a word "
            f"to a load host and back takes up to {words}, and so far apart hosts may begin a turn"
        )
