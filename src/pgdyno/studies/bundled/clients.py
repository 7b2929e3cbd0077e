"""Clients: one server under more and more of them, up to several for each CPU.

Where a few clients keep the server busy, more of them only wait in another place, and cost the machine. The
study finds the smallest number that is as good as the best, and says what the client itself costs: on the
machine of the server it takes its CPU time, which bends the curve before the server does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pgdyno.base.errors import UsageError
from pgdyno.measure.bundled_study import BundledStudy, Machine, Option, Sizing, StudyContext, separated
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import PROTOCOLS, Workload
from pgdyno.studies.bundled._own_tables import CAVEAT, OWN, TABLES, on_tables, shared_buffers


def _protocols(texts: tuple[str, ...]) -> tuple[str, ...]:
    for one in (values := separated(texts)):
        if one not in PROTOCOLS:
            raise UsageError(f'no protocol "{one}"', hint=f"choose {', '.join(PROTOCOLS)}")
    return values


PROTOCOL = Option(
    "protocol",
    "how statements travel; repeatable, or several separated by commas, for curves side by side [default: "
    "prepared].",
    _protocols,
    metavar="|".join(PROTOCOLS),
    is_repeatable=True,
)
_MOST_PER_CPU = 4  # arbitrary: past twice the CPUs only waiting grows
_SPARE_CONNECTIONS = 20
_PUBLISHED = (
    "published in 2020 for two machines of 8 CPUs, pgbench at scale 30, 2 to 14 clients on the server's own "
    "machine: the curve of select-only bends from 6 clients on, because pgbench takes about 20 % of the CPUs"
)


def workloads(sizing: Sizing) -> Mapping[str, Workload]:
    """Return every load at every number of clients, by every requested protocol, on all requested tables."""
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
    """Return room for the connections, and for the data, so that clients wait for nothing but each other."""
    most = max(client_counts(sizing))
    return {
        "max_connections": str(max(100, most + _SPARE_CONNECTIONS)),
        "shared_buffers": shared_buffers(workloads(sizing).values()),
    }


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
    """Return 1 to four for each CPU, or --clients; where those are many, not all will be measured."""
    return tuple(range(1, (sizing.clients or _most(sizing.machine)) + 1))


def _by_protocols(load: Workload, protocols: Sequence[str]) -> tuple[Workload, ...]:
    """Return a load by each protocol, named after it; unchanged if none is requested."""
    named = replace(load, issued_as=load.name)
    return tuple(
        replace(named, name=f"{load.name}-{one}", load=f"{load.name}, {one}", protocol=one)
        for one in dict.fromkeys(protocols)
    ) or (named,)


def _most(machine: Machine) -> int:
    return max(8, _MOST_PER_CPU * machine.cpus)


STUDY = BundledStudy(
    title="throughput by the number of clients: where more of them stop paying, and their cost",
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
