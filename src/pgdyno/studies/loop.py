"""Loop: the same query issued by clients, and in a loop inside the server, without the client in the way.

What a client-driven benchmark shows is client, network, protocol and query together. Three loads take them
apart: pgbench's select-only by our driver; the same in a loop in C inside the server (extension
pgdyno_loop); the same in a loop in PL/pgSQL. A loop without a query says what the looping itself takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pgdyno.model.experiment import Design, VoidThresholds
from pgdyno.model.loop import C_LOOP, CLIENT, EMPTY_LOOP, PLPGSQL_LOOP, SCHEMA
from pgdyno.model.study import Study
from pgdyno.model.workload import Workload
from pgdyno.studies._contract import Machine, Sizing, StudyContext

TITLE = "one query by clients, in C and in PL/pgSQL inside the server: what a transaction's time is made of"
NEEDS_PLAN = False
WORKLOADS = ("pgbench-select",)
# A loop ends when it ends: a block is one turn. Clients take CPU time from the server, as they do in the field.
DESIGN = Design(
    block_s=2.0,
    slice_s=2.0,
    head_s=0.0,
    blocks_per_round=1,
    warmup_s=0.5,
    is_isolated=False,
    clients=1,
    thresholds=VoidThresholds(schedule_lag_share=1.0),
)
BUDGET_S = 10 * 60.0

_EXECUTIONS = 10_000  # arbitrary: 20 ms, of which the transaction's own start and end are less than 1 %
_EMPTY_EXECUTIONS = 10_000_000  # for the same reason
_LOOPS = {
    C_LOOP: ("exec_query_in_loop", _EXECUTIONS),
    PLPGSQL_LOOP: ("exec_query_in_loop_plpgsql", _EXECUTIONS),
    EMPTY_LOOP: ("empty_loop", _EMPTY_EXECUTIONS),
}
_MOST_PER_CPU = 2  # past the CPUs only waiting grows
_SPARE_CONNECTIONS = 20
_ANY_SEED = {"pgdyno_loop.seed": "0"}  # else all loops would read the same accounts, again and again
_PUBLISHED = (
    "published in 2020 for two machines of 8 CPUs, pgbench at scale 30: by clients on the server's own machine "
    "select-only bends from 6 on, in a loop in C inside the server it is linear up to 8; on the Arm machine "
    "the loop in C was 35 % slower than on the x86 one, the loop in PL/pgSQL 65 %"
)


def workloads(sizing: Sizing) -> Mapping[str, Workload]:
    """Return every load at every number of clients, and the loop without a query once."""
    return {cell.name: cell for cell in _cells(sizing)}


def settings(sizing: Sizing) -> Mapping[str, str]:
    """Return room for the connections and for the data."""
    most = max(client_counts(sizing))
    return {"max_connections": str(max(100, most + _SPARE_CONNECTIONS)), "shared_buffers": "1GB"}


def study(context: StudyContext) -> Study:
    """Return one variant: what varies is who asks, and how many of them there are."""
    return Study(
        name="loop",
        question="What does a transaction's time consist of, and who limits how it scales?",
        variants=(context.baseline,),
        workloads=context.workloads,
        design=context.design,
        notes=(_PUBLISHED,),
    )


def client_counts(sizing: Sizing) -> tuple[int, ...]:
    """Return 1, 2, 3, 4, 6, 8, 12, … up to two for each CPU; with --clients no more than that."""
    most = sizing.clients or _most(sizing.machine)
    counts = {1, most, *(base << power for base in (2, 3) for power in range(most.bit_length()))}
    return tuple(sorted(count for count in counts if count <= most))


def _most(machine: Machine) -> int:
    return max(4, _MOST_PER_CPU * machine.cpus)


def _cells(sizing: Sizing) -> Iterator[Workload]:
    for load in sizing.loads:
        data_set = replace(load.data_set, has_loops=True)
        for clients in client_counts(sizing):
            yield replace(
                load,
                name=f"client-{clients}",
                data_set=data_set,
                issued_as=load.name,
                clients=clients,
                load=CLIENT,
            )
            for name, title in (("c-loop", C_LOOP), ("plpgsql-loop", PLPGSQL_LOOP)):
                yield _loop(replace(load, name=f"{name}-{clients}", data_set=data_set), title, clients)
        yield _loop(replace(load, name="empty-loop", data_set=data_set), EMPTY_LOOP, 1)


def _loop(load: Workload, title: str, clients: int) -> Workload:
    function, executions = _LOOPS[title]
    return replace(
        load,
        title=f"{title} inside the server, {clients} at once",
        scripts=(),
        issued_as="query",
        clients=clients,
        load=title,
        sql=f"SELECT executions FROM {SCHEMA}.{function}({executions})",
        executions=executions,
        session_settings=_ANY_SEED,
    )
