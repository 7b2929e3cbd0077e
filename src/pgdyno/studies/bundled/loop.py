"""Loop: the same query issued by clients, and in a loop inside the server, without clients.

A client-driven benchmark measures client, network, protocol and query together. Three loads separate them:
pgbench's select-only, issued by pgdyno's driver; the same in a loop in C inside the server (extension
pgdyno_loop); the same in a loop in PL/pgSQL. At one client, a loop without a query shows the cost of the loop
itself, and one query for the same number of rows shows the cost without repeated executor starts. Instead of
reading one row, an execution may sum up many; instead of shared tables, each session may have its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pgdyno.measure.bundled_study import BundledStudy, Machine, Sizing, StudyContext
from pgdyno.model.experiments.experiment import Design, VoidThresholds
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import (
    AGGREGATE,
    BESIDE,
    C_LOOP,
    CLIENT,
    EMPTY_LOOP,
    ONE_QUERY,
    PLPGSQL_LOOP,
    SCHEMA,
    Statement,
    Workload,
    load_name,
    name_on_own_tables,
)
from pgdyno.studies.bundled._client_tables import CAVEAT, OWN, TABLES, on_tables, room_for

# A loop runs to its end, so a block is one turn. Clients share the server's CPUs, as in the published study.
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


class _Looped(NamedTuple):
    """A client's statement in a loop inside the server, ``executions`` times per transaction.

    ``function`` is the loop in C; the name of the PL/pgSQL loop has the suffix ``_plpgsql``. ``last_key`` is
    the highest random key. ``one_query`` has the select list of the single query, and the join that finds the
    rows of each key.
    """

    words: tuple[str, ...]
    executions: int  # arbitrary: takes 20 to 100 ms; work done once per transaction is less than 1 %
    function: str
    last_key: str
    one_query: tuple[str, str]

    def sql(self, issuer: str) -> str:
        """Return the statement of a transaction."""
        if issuer == ONE_QUERY:
            last = f"(SELECT {self.last_key} FROM pgbench_accounts)"  # noqa: S608 — our own
            what, rows = self.one_query
            keys = f"unnest({SCHEMA}.loop_keys({self.executions}, {last})) AS key"
            return f"SELECT {what} FROM {keys} {rows}"  # noqa: S608 — our own
        function = self.function if issuer == C_LOOP else f"{self.function}_plpgsql"
        return f"SELECT executions FROM {SCHEMA}.{function}({self.executions})"  # noqa: S608 — our own


_SUM = (
    "SELECT sum(abalance) AS total FROM "
    "(SELECT abalance FROM pgbench_accounts WHERE aid >= key ORDER BY aid LIMIT 1000) AS following"
)
_LOOPED = {
    "pgbench-select": _Looped(
        (),
        10_000,
        "exec_query_in_loop",
        "max(aid)",
        ("sum(abalance)", "JOIN pgbench_accounts ON aid = key"),
    ),
    "pgbench-aggregate": _Looped(
        (AGGREGATE,),
        200,
        "exec_aggregate_in_loop",
        "max(aid) - 999",
        ("sum(total)", f"CROSS JOIN LATERAL ({_SUM}) AS one"),
    ),
}
"""Loops by the client's workload."""
_ITERATIONS = 10_000_000  # arbitrary: about 40 ms
_EMPTY = Statement(
    f"SELECT executions FROM {SCHEMA}.empty_loop({_ITERATIONS})",  # noqa: S608 — our own
    executions=_ITERATIONS,
)
_BY_THE_INDEX = {  # forces a nested loop with an index lookup per key
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_memoize": "off",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
}
_MOST_PER_CPU = 2  # above the number of CPUs, only waiting increases
_ANY_SEED = {"pgdyno_loop.seed": "0"}  # otherwise all loops would read the same accounts repeatedly
_PUBLISHED = (
    "published in 2020 for two machines of 8 CPUs, pgbench at scale 30: with clients on the server's machine "
    "select-only flattens from 6 clients on; in a loop in C inside the server it is linear up to 8; on the "
    "Arm machine the loop in C was 35 % slower than on the x86 machine, the loop in PL/pgSQL 65 %"
)


def workloads(sizing: Sizing) -> Mapping[str, Workload]:
    """Return every load at every number of clients, and two reference loads at one client."""
    return {cell.name: cell for cell in _cells(sizing)}


def settings(sizing: Sizing) -> Mapping[str, str]:
    """Return settings with room for all connections and data."""
    return room_for(max(client_counts(sizing)), workloads(sizing).values())


def study(context: StudyContext) -> Study:
    """Return one variant; the query's issuer and the number of clients vary."""
    return Study(
        name="loop",
        question="What does a transaction's time consist of, and who limits how it scales?",
        variants=(context.baseline,),
        workloads=context.workloads,
        design=context.design,
        notes=(_PUBLISHED, *((CAVEAT,) if OWN in context.sizing.of(TABLES) else ())),
    )


def client_counts(sizing: Sizing) -> tuple[int, ...]:
    """Return 1, 2, 3, 4, 6, 8, 12, … up to two per CPU, and one per CPU; at most --clients."""
    most, cpus = sizing.clients or _most(sizing.machine), sizing.machine.cpus
    counts = {1, cpus, most, *(base << power for base in (2, 3) for power in range(most.bit_length()))}
    return tuple(sorted(count for count in counts if count <= most))


def _most(machine: Machine) -> int:
    return max(4, _MOST_PER_CPU * machine.cpus)


def _cells(sizing: Sizing) -> Iterator[Workload]:
    counts = client_counts(sizing)
    for named in sizing.loads:
        looped = _LOOPED[named.name]
        for load in on_tables(named, sizing.of(TABLES), max(counts)):
            yield from _cells_of(
                replace(load, data_set=replace(load.data_set, has_loops=True)), looped, counts
            )


def _cells_of(load: Workload, looped: _Looped, counts: Sequence[int]) -> Iterator[Workload]:
    issued = replace(load, issued_as=load.issued_as or load.name)
    for clients in counts:
        yield _named(issued, load_name(CLIENT, *looped.words), clients)
        for issuer in (C_LOOP, PLPGSQL_LOOP):
            yield _in_server(load, looped, issuer, clients)
    for issuer in BESIDE:
        yield _in_server(load, looped, issuer, 1)


def _in_server(load: Workload, looped: _Looped, issuer: str, clients: int) -> Workload:
    name, is_empty = load_name(issuer, *looped.words), issuer == EMPTY_LOOP
    looping = replace(
        load,
        title=f"{name}, {clients} at once",
        kind=_EMPTY if is_empty else Statement(looped.sql(issuer), executions=looped.executions),
        session_settings={**_ANY_SEED, **(_BY_THE_INDEX if issuer == ONE_QUERY else {})},
    )
    return _named(looping, name, clients)


def _named(load: Workload, name: str, clients: int) -> Workload:
    key = "-".join(name.lower().replace("/", "").replace(",", "").split())
    if count := load.data_set.schemas:
        key, name = f"{key}-own", name_on_own_tables(name, count)
    return replace(load, name=f"{key}-{clients}", load=name, clients=clients)


STUDY = BundledStudy(
    title="one query by clients, in C and in PL/pgSQL in the server: the parts of a transaction's time",
    study=study,
    measures=("pgbench-select",),
    workloads=workloads,
    settings=settings,
    loads=tuple(_LOOPED),
    design=_DESIGN,
    budget_s=10 * 60.0,
    options=(TABLES,),
)
