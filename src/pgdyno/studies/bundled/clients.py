"""Clients: one server under an increasing number of clients, up to several per CPU.

If a few clients keep the server busy, more of them only wait, and use resources of the machine. The study
finds the smallest number that is as good as the best, and reports the cost of the client itself: on the
server's machine it takes CPU time from the server, which flattens the curve before the server's own limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pgdyno.base.errors import UsageError
from pgdyno.measure.bundled_study import BundledStudy, Machine, Option, Sizing, StudyContext, separated
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import PROTOCOLS, Workload
from pgdyno.studies.bundled._client_tables import CAVEAT, OWN, TABLES, on_tables, room_for


def _protocols(texts: tuple[str, ...]) -> tuple[str, ...]:
    for one in (values := separated(texts)):
        if one not in PROTOCOLS:
            raise UsageError(f'no protocol "{one}"', hint=f"choose {', '.join(PROTOCOLS)}")
    return values


PROTOCOL = Option(
    "protocol",
    "query protocol; repeatable, or several separated by commas, for several curves [default: prepared].",
    _protocols,
    metavar="|".join(PROTOCOLS),
    is_repeatable=True,
)
_MOST_PER_CPU = 4  # arbitrary: above twice the number of CPUs, only waiting increases
_PUBLISHED = (
    "published in 2020 for two machines of 8 CPUs, pgbench at scale 30, 2 to 14 clients on the server's own "
    "machine: the curve of select-only flattens from 6 clients on, because pgbench uses about 20 % of the CPU"
)


def workloads(sizing: Sizing) -> Mapping[str, Workload]:
    """Return every load at every number of clients, with every requested protocol and kind of tables."""
    counts = client_counts(sizing)
    loads = [
        load
        for one in sizing.loads
        for protocol in _by_protocols(one, sizing.of(PROTOCOL))
        for load in on_tables(protocol, sizing.of(TABLES), max(counts))
    ]
    cells = (
        replace(load, name=f"{load.name}-{clients}", clients=clients) for load in loads for clients in counts
    )
    return {cell.name: cell for cell in cells}


def settings(sizing: Sizing) -> Mapping[str, str]:
    """Return settings with room for all connections and data, so that clients wait only for each other."""
    return room_for(max(client_counts(sizing)), workloads(sizing).values())


def study(context: StudyContext) -> Study:
    """Return one variant; the number of clients varies."""
    return Study(
        name="clients",
        question="How many clients are as good as any number of them?",
        variants=(context.baseline,),
        workloads=context.workloads,
        design=context.design,
        notes=(_PUBLISHED, *((CAVEAT,) if OWN in context.sizing.of(TABLES) else ())),
        is_adaptive=True,
    )


def client_counts(sizing: Sizing) -> tuple[int, ...]:
    """Return every number from 1 to four per CPU, or to --clients; of many, only some are measured."""
    return tuple(range(1, (sizing.clients or _most(sizing.machine)) + 1))


def _by_protocols(load: Workload, protocols: Sequence[str]) -> tuple[Workload, ...]:
    """Return a load per protocol, named after it; the unchanged load if none is requested."""
    named = replace(load, issued_as=load.name)
    return tuple(
        replace(named, name=f"{load.name}-{one}", load=f"{load.name}, {one}", protocol=one)
        for one in dict.fromkeys(protocols)
    ) or (named,)


def _most(machine: Machine) -> int:
    return max(8, _MOST_PER_CPU * machine.cpus)


STUDY = BundledStudy(
    title="throughput by number of clients: where more clients stop helping, and their cost",
    study=study,
    measures=("pgbench-select", "pgbench-tpcb"),
    workloads=workloads,
    settings=settings,
    design=Design(block_s=3.0, blocks_per_round=1, warmup_s=1.0),
    budget_s=10 * 60.0,
    options=(PROTOCOL, TABLES),
    takes_workloads=True,
    takes_server=True,
)
