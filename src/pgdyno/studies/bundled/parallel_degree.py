"""Parallel degree: one query with an increasing number of workers, up to twice the CPUs.

For each query, workers beyond some number only cost. The number depends on the table's size, the computation
per row and the machine, and no formula predicts it. The study finds the smallest number that is as good as
the best, alone and with as many clients as CPUs running the same query at once: workers that speed up one
query slow down others.

Data, ``t_bit``: bit strings of 200 random bits, a form used for tags of documents. ``count`` costs little per
row, ``bitand`` several times as much; the other queries share other work among workers. ``partition-wise`` is
the query of ``hash-join`` on the same rows in eight partitions, joined and counted partition by partition.
``create-index`` builds an index and rolls it back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import NamedTuple

from pgdyno.base import numbers
from pgdyno.base.errors import MemoryProofError, UsageError
from pgdyno.base.text import counted
from pgdyno.measure.bundled_study import BundledStudy, Machine, Option, Sizing, StudyContext, is_given, last
from pgdyno.model.experiments.experiment import Design, VoidThresholds
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import DataSet, ResetPolicy, Statement, Workload
from pgdyno.model.variants.variant import setting_key

# Queries run to their end, so a block is one turn; parts of queries count.
_DESIGN = Design(
    block_s=2.0,
    slice_s=2.0,
    head_s=0.0,
    blocks_per_round=1,
    warmup_s=0.2,
    is_isolated=False,
    clients=1,
    thresholds=VoidThresholds(schedule_lag_share=1.0),
)

_MASK = f"B'{'1' * 8:0<200}'"
_KEY = "substring({}.id FROM 1 FOR 64)::bigint"  # a bit string itself has no hash function
# An eighth of the second table is hashed. A histogram estimates its size; a substring has no histogram.
_JOIN = f"""SELECT count(*) FROM t_bit a JOIN t_bit b ON {_KEY.format("a")} = {_KEY.format("b")}
WHERE b.id < B'001'"""  # noqa: S608 — our own
# Rolled back by raising and catching an error: DROP INDEX would wait for the builds of other clients.
_BUILD = """DO $$BEGIN
    EXECUTE format('CREATE INDEX built_by_%s ON t_bit (id)', pg_backend_pid());
    RAISE SQLSTATE 'PGDYN';
EXCEPTION WHEN SQLSTATE 'PGDYN' THEN NULL;
END$$"""
HASH_JOIN, PARTITION_WISE, CREATE_INDEX = "hash-join", "partition-wise", "create-index"
# 256 groups, which the planner estimates correctly: with any other expression it expects a group per row.
_FIRST_BITS = ", ".join(f"get_bit(id, {bit}) = 1" for bit in range(8))
_GROUPS = f"SELECT count(*) FROM t_bit GROUP BY {_FIRST_BITS}"  # noqa: S608 — our own
_QUERIES = {
    "count": "SELECT count(*) FROM t_bit",
    "bitand": f"SELECT count(*) FROM t_bit WHERE bitand(id, {_MASK}) = {_MASK}",  # noqa: S608 — our own
    "aggregate": _GROUPS,
    HASH_JOIN: _JOIN,
    "sort": "SELECT id FROM t_bit ORDER BY id OFFSET 1000000000000",  # beyond the last row: no row is sent
    "append": "SELECT count(*) FROM (TABLE t_bit UNION ALL TABLE t_bit) twice",
    PARTITION_WISE: _JOIN,
    CREATE_INDEX: _BUILD,
}
_USUAL = ("count", "bitand")
IN_BUFFERS, IN_PAGE_CACHE, ON_DISK = "shared-buffers", "page-cache", "disk"
PRESET = Option(
    "preset",
    "data in shared-buffers, page-cache, or disk [default: shared-buffers].",
    last,
    is_of_own_servers=True,
)
QUERY = Option("query", "your own query, instead of the study's two.", last, metavar="SQL")
WRITES = Option(
    "writes",
    "the query may write. Each execution is rolled back; dead rows, WAL, advances of sequences and external "
    "effects of functions remain.",
    is_given,
    is_flag=True,
)
_MB = 1 << 20
_BYTES_PER_THOUSAND_ROWS = 60_236  # measured: 2,000,000 rows in 120,471,552 bytes
_THOUSAND_ROWS_PER_CPU = 2_000  # arbitrary: 115 MB, about half a second of one CPU for bitand
_MEMORY_SHARE = 0.2  # of available memory, for the data; as much again for shared_buffers or page cache
_LIMIT_SHARE = 0.4  # of the data that the server of the preset disk may keep in memory, besides its processes
_PROCESSES_BYTES = 160 * _MB
_WORKERS_PER_CPU = 2  # above the number of CPUs, only waiting increases
_SPARE_PROCESSES = 8
# The server cancels queries of clients that are gone, as after Ctrl-C; otherwise it would complete them.
_NOT_LEFT_BEHIND = {"client_connection_check_interval": "1s"}
_FORCED: Mapping[str, str] = {
    # Every requested degree is planned, regardless of cost; the table's parallel_workers is 1024.
    "parallel_setup_cost": "0",
    "parallel_tuple_cost": "0",
    "min_parallel_table_scan_size": "0",
    "min_parallel_index_scan_size": "0",
    **_NOT_LEFT_BEHIND,
    "default_transaction_read_only": "on",
}
_HASHED = {"enable_mergejoin": "off"}  # otherwise the plan could change from some degree on
_BY_PARTITIONS = {"enable_partitionwise_join": "on", "enable_partitionwise_aggregate": "on"}
_EXTRA_SETTINGS: Mapping[str, Mapping[str, str]] = {
    HASH_JOIN: _HASHED,
    PARTITION_WISE: {**_HASHED, **_BY_PARTITIONS},
}
_PARTITIONS = {"partitions": "8"}  # arbitrary
_PUBLISHED = (
    "published for PostgreSQL 9.6 on a virtual machine with 32 cores: 200 million rows in memory took "
    "18,505 ms (count) and 53,098 ms (bitand) serially, at best 1,897 ms and 4,321 ms, both with 32 workers; "
    "with 1.6 billion rows count was best with 17 workers (15.0 times as fast), bitand with 32 (30.8)"
)
_LEADER = "parallel_leader_participation"
_NEVER_ONE = (
    f"one worker alone is left out for queries, because {_LEADER} is off on a server: a single worker "
    "without the leader saves nothing, and PostgreSQL never plans it"
)
_ROLLED_BACK = (
    "each execution was rolled back: BEGIN and ROLLBACK are part of its time, a commit's flush is not; "
    "clients that create a table of the same name wait for each other"
)
_NO_JIT = "jit is off, because the published study had none: every worker would compile again"


class _Query(NamedTuple):
    name: str
    sql: str
    may_write: bool = False


def workloads(sizing: Sizing) -> Mapping[str, Workload]:
    """Return every query at every degree, alone and with others. Raises: UsageError; MemoryProofError."""
    cells = cells_on(_data_set(sizing), sizing, degrees(sizing.machine))
    limit_bytes = int(_LIMIT_SHARE * _data_set(sizing).size_bytes) + _PROCESSES_BYTES
    if _preset(sizing) != ON_DISK:
        return cells
    return {name: replace(cell, server_memory_bytes=limit_bytes) for name, cell in cells.items()}


def cells_on(data_set: DataSet, sizing: Sizing, workers: Sequence[int]) -> dict[str, Workload]:
    """Return every query at these degrees on a data set, alone and with others."""
    queries = [_Query(name, _QUERIES[name]) for name in _chosen(sizing)]
    if (query := sizing.of(QUERY)) is not None:
        queries.append(_Query(QUERY.name, query, sizing.of(WRITES)))
    cells = (
        _cell(query, clients, count, data_set)
        for query in queries
        for clients in client_counts(sizing)
        for count in workers
    )
    return {cell.name: cell for cell in cells}


def forced(workers: int) -> Mapping[str, str]:
    """Return session settings with which every query gets this degree, if it can be parallel."""
    return {**_FORCED, "max_parallel_workers_per_gather": str(workers)}


def settings(sizing: Sizing) -> Mapping[str, str]:
    """Return settings with room for all concurrent workers, and for the data with preset shared-buffers."""
    workers = max(degrees(sizing.machine)) * max(client_counts(sizing))
    buffers_bytes = 1.1 * _data_set(sizing).size_bytes + 64 * _MB
    return {
        "max_worker_processes": str(workers + _SPARE_PROCESSES),
        "max_parallel_workers": str(workers),
        "jit": "off",
        **({"shared_buffers": f"{ceil(buffers_bytes / _MB)}MB"} if _preset(sizing) == IN_BUFFERS else {}),
    }


def study(context: StudyContext) -> Study:
    """Return a study of the baseline, unless factors add variants; the number of workers varies."""
    is_without = any(
        setting_key(name) == _LEADER and [*values] != ["on"] for name, values in context.factors.items()
    )
    return Study(
        name="parallel-degree",
        question="How many parallel workers are as good as any number of them?",
        variants=(context.baseline,),
        workloads=_without_one_worker(context) if is_without else context.workloads,
        design=context.design,
        notes=(
            *((_PUBLISHED,) if {*_USUAL} & {*_chosen(context.sizing)} else ()),
            *((_NEVER_ONE,) if is_without else ()),
            *query_notes(context.sizing),
            _NO_JIT,
        ),
        is_adaptive=True,
    )


def query_notes(sizing: Sizing) -> tuple[str, ...]:
    """Return the notes on a user's own query."""
    query = sizing.of(QUERY)
    if query is None:
        return ()
    return (f"the query: {query}", *((_ROLLED_BACK,) if sizing.of(WRITES) else ()))


def degrees(machine: Machine) -> tuple[int, ...]:
    """Return every number from 0 to two per CPU; of many, only some are measured."""
    return tuple(range(max(4, _WORKERS_PER_CPU * machine.cpus) + 1))


def client_counts(sizing: Sizing) -> tuple[int, ...]:
    """Return 1 and the number of CPUs, or of --clients instead."""
    others = sizing.clients or max(2, sizing.machine.cpus)
    return tuple(dict.fromkeys((1, others)))


def _without_one_worker(context: StudyContext) -> tuple[str, ...]:
    """Return the workloads without those of exactly one worker.

    The leader takes part in building an index regardless of the setting.
    """
    cells = workloads(context.sizing)
    return tuple(name for name in context.workloads if not _has_one_worker(cells[name].statement))


def _has_one_worker(statement: Statement | None) -> bool:
    return statement is not None and statement.workers == 1 and not statement.builds_index


def _chosen(sizing: Sizing) -> tuple[str, ...]:
    """Return the study's own queries to measure; with a user's query, only those named."""
    return sizing.chosen or (_USUAL if sizing.of(QUERY) is None else ())


def _cell(query: _Query, clients: int, workers: int, data_set: DataSet) -> Workload:
    name = query.name
    load = name if clients == 1 else f"{name}, {clients} clients at once"
    cell = Workload(
        name=f"{name}-{workers}" if clients == 1 else f"{name}-{workers}-by-{clients}",
        title=f"{load}, {counted(workers, 'worker')}",
        data_set=data_set,
        reset=ResetPolicy.KEEP,
        kind=Statement(query.sql, workers, name == CREATE_INDEX, query.may_write),
        clients=clients,
        load=load,
        session_settings={**forced(workers), **_EXTRA_SETTINGS.get(name, {})},
    )
    if name == PARTITION_WISE:
        return replace(cell, data_set=replace(data_set, options=_PARTITIONS))
    if name == CREATE_INDEX:
        settings = {**_NOT_LEFT_BEHIND, "max_parallel_maintenance_workers": str(workers)}
        return replace(cell, reset=ResetPolicy.RESTORE, session_settings=settings)
    if query.may_write:
        writing = {**cell.session_settings, "default_transaction_read_only": "off"}
        return replace(cell, session_settings=writing)
    return cell


def _data_set(sizing: Sizing) -> DataSet:
    """Return the data set: enough to keep the CPUs busy for a while, limited by the available memory."""
    wanted = _THOUSAND_ROWS_PER_CPU * sizing.machine.cpus
    room = int(_MEMORY_SHARE * sizing.machine.available_bytes / _BYTES_PER_THOUSAND_ROWS)
    thousands = min(wanted, room)
    if thousands == 0:
        raise MemoryProofError(
            "not enough free memory for the data of this study",
            detail=f"available: {numbers.size(sizing.machine.available_bytes)}",
            hint="run it on a host with more free memory",
        )
    return DataSet("t_bit", thousands, _BYTES_PER_THOUSAND_ROWS)


def _preset(sizing: Sizing) -> str:
    preset, known = sizing.of(PRESET), (IN_BUFFERS, IN_PAGE_CACHE, ON_DISK)
    preset = IN_BUFFERS if preset is None else preset
    if preset not in known:
        raise UsageError(
            f'the study parallel-degree has no preset "{preset}"', hint=f"choose {', '.join(known)}"
        )
    return preset


STUDY = BundledStudy(
    title="a query's time by parallel workers: where more workers stop helping, and their cost to others",
    study=study,
    workloads=workloads,
    settings=settings,
    loads=tuple(_QUERIES),
    design=_DESIGN,
    budget_s=10 * 60.0,
    options=(PRESET, QUERY, WRITES),
    takes_server=True,
)
