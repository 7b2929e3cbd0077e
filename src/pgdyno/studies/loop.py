"""Loop: the same query issued by clients, and in a loop inside the server.

The loop runs without the client in the way.

What a client-driven benchmark shows is client, network, protocol and query together. Three loads take them
apart: pgbench's select-only by our driver; the same in a loop in C inside the server (extension
pgdyno_loop); the same in a loop in PL/pgSQL. At one client, a loop without a query says what the looping
itself takes, and one query that has as many rows what is left when the executor starts only once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pgdyno.model.experiments.experiment import Design, VoidThresholds
from pgdyno.model.experiments.loop import BESIDE, C_LOOP, CLIENT, EMPTY_LOOP, ONE_QUERY, PLPGSQL_LOOP, SCHEMA
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Statement, Workload
from pgdyno.studies._contract import BundledStudy, Machine, Sizing, StudyContext

# A loop ends when it ends: a block is one turn. Clients share the server's CPUs, as in the published study.
_DESIGN = Design(
    block_s=2.0,
    slice_s=2.0,
    head_s=0.0,
    blocks_per_round=1,
    warmup_s=0.5,
    is_isolated=False,
    clients=1,
    thresholds=VoidThresholds(schedule_lag_share=1.0),
)

# Arbitrary: 20 to 100 ms, of which what is done once in a transaction is less than 1 %.
_EXECUTIONS, _EMPTY_EXECUTIONS = 10_000, 10_000_000
_KEYS = f"{SCHEMA}.loop_keys({_EXECUTIONS}, (SELECT max(aid) FROM pgbench_accounts))"  # noqa: S608 — our own
_ROWS = f"unnest({_KEYS}) AS key JOIN pgbench_accounts ON aid = key"
_IN_SERVER = {
    C_LOOP: (_EXECUTIONS, f"{SCHEMA}.exec_query_in_loop({_EXECUTIONS})"),
    PLPGSQL_LOOP: (_EXECUTIONS, f"{SCHEMA}.exec_query_in_loop_plpgsql({_EXECUTIONS})"),
    EMPTY_LOOP: (_EMPTY_EXECUTIONS, f"{SCHEMA}.empty_loop({_EMPTY_EXECUTIONS})"),
    ONE_QUERY: (_EXECUTIONS, _ROWS),
}
"""How often it is executed, and where the rows of the statement come from."""
_BY_THE_INDEX = {  # whatever it costs: a nested loop that searches the index for every key
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_memoize": "off",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
}
_MOST_PER_CPU = 2  # past the CPUs only waiting grows
_SPARE_CONNECTIONS = 20
_ANY_SEED = {"pgdyno_loop.seed": "0"}  # else all loops would read the same accounts, again and again
_PUBLISHED = (
    "published in 2020 for two machines of 8 CPUs, pgbench at scale 30: with clients on the server's machine "
    "select-only bends from 6 of them on; in a loop in C inside the server it is linear up to 8; on the Arm "
    "machine the loop in C was 35 % slower than on the x86 one, the loop in PL/pgSQL 65 %"
)


def workloads(sizing: Sizing) -> Mapping[str, Workload]:
    """Return every load at every number of clients, and the loop without a query once."""
    return {cell.name: cell for cell in _cells(sizing)}


def settings(sizing: Sizing) -> Mapping[str, str]:
    """Return room for the connections and for the data."""
    most = max(client_counts(sizing))
    return {"max_connections": str(max(100, most + _SPARE_CONNECTIONS)), "shared_buffers": "1GB"}


def study(context: StudyContext) -> Study:
    """Return one variant; the issuer of the query and the number of issuers vary."""
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
            for title in (C_LOOP, PLPGSQL_LOOP):
                yield _in_server(replace(load, data_set=data_set), title, clients)
        for title in BESIDE:
            yield _in_server(replace(load, data_set=data_set), title, 1)


def _in_server(load: Workload, title: str, clients: int) -> Workload:
    executions, rows = _IN_SERVER[title]
    what = "sum(abalance)" if title == ONE_QUERY else "executions"
    return replace(
        load,
        name=f"{title.lower().replace('/', '').replace(' ', '-')}-{clients}",
        title=f"{title}, {clients} at once",
        kind=Statement(f"SELECT {what} FROM {rows}", executions=executions),  # noqa: S608 — our own
        clients=clients,
        load=title,
        session_settings={**_ANY_SEED, **(_BY_THE_INDEX if title == ONE_QUERY else {})},
    )


STUDY = BundledStudy(
    title="one query by clients, in C and in PL/pgSQL in the server: the parts of a transaction's time",
    study=study,
    measures=("pgbench-select",),
    workloads=workloads,
    settings=settings,
    design=_DESIGN,
    budget_s=10 * 60.0,
)
