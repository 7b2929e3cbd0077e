"""``run parallel-degree`` and ``run clients`` on an attached server.

The best degree of a query is measured on the server's own data. Only session settings are changed. Sessions
only read, unless writes are allowed; then each execution is rolled back. Degrees that the planner does not
choose there (limited by the table's size or option, or by the worker pools) are omitted and listed.

Clients may run on the server's host or on another one. On another host they take no CPU time from the server,
but the network is part of every figure, and the server's CPU time is not seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from pgdyno.apply.host_state import this_host
from pgdyno.base.errors import RefusedError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.measure.arenas.attached_server import find_remote_server
from pgdyno.measure.arenas.load_capacity import require_room
from pgdyno.measure.arenas.opening import open_own_data_arena, open_remote_arena
from pgdyno.measure.awake import awake_record_of_attached
from pgdyno.measure.bundled_study import Sizing, StudyContext
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.experiment import ExperimentRun
from pgdyno.measure.records.new_experiment import Context
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.workload import DataSet
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.explain_degree import causes_of
from pgdyno.postgres.connection.connection import Connection, connect
from pgdyno.postgres.connection.privileges import require_powerless
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.inspection.settings import read_settings
from pgdyno.postgres.parallel_degree import Pools
from pgdyno.postgres.planner.parallel_catalog import read_pools, read_tables
from pgdyno.postgres.planner.parallel_plan import Plan, planned_workers, scans
from pgdyno.postgres.planner.planner import Planner
from pgdyno.store.experiments import open_store
from pgdyno.studies.bundled import clients, parallel_degree

_AS_FOUND = Variant("as-found")
_OF_THE_CLIENT = "client"  # pg_settings.source of settings from libpq: options=, PGOPTIONS, PGTZ, …
_LIMITS_HINT = "pgdyno explain-degree names the limits to raise"
_DEGREES_AS_IT_IS = (
    "measured on a running server as it is: the figures include its other work at the time, it was not "
    "restarted for the rounds, and its setting of jit applied"
)
_CLIENTS_AS_IT_IS = (
    "measured on a running server as it is: the figures include its other work at the time; for each round "
    "the data were restored, but the server was not restarted"
)
_ELSEWHERE = (
    "the server is not proven to run on the clients' host: its CPU time was not seen, and every figure may "
    "include a network between them"
)


@dataclass(frozen=True)
class Surveyed:
    """Facts about the server, read before measuring; ``left_out`` are degrees that it does not give."""

    database: str
    data_directory: str
    data_set: DataSet
    degrees: tuple[int, ...]
    left_out: tuple[int, ...]
    session_settings: Mapping[str, str]  # of the connection string and libpq's environment


def measure_degree_of(dsn: str, sizing: Sizing, conditions: Conditions, progress: Progress) -> Experiment:
    """Measure the query of ``sizing`` at every degree that the server can give it.

    Raises: UsageError if the only such degree is 0; ServerError, ConnectionFailedError.
    """
    surveyed = look(dsn, sizing)
    cells = {
        name: replace(cell, session_settings={**surveyed.session_settings, **cell.session_settings})
        for name, cell in parallel_degree.cells_on(surveyed.data_set, sizing, surveyed.degrees).items()
    }
    context = StudyContext(_AS_FOUND, tuple(cells), conditions.design, sizing=sizing)
    study = parallel_degree.study(context)
    notes = (_DEGREES_AS_IT_IS, *_left_out(surveyed.left_out), *parallel_degree.query_notes(sizing))
    study = replace(study, notes=notes)
    with (
        open_own_data_arena(dsn, surveyed.data_directory, surveyed.database) as arena,
        closing(open_store()) as store,
    ):
        run = ExperimentRun(arena, store, progress, cells, is_resumable=False)
        awake = awake_record_of_attached(this_host(), is_here=True)
        options = Context(options=parallel_degree.STUDY.grid_options(sizing), awake=awake)
        return run.run(study, budget_s=conditions.budget_s, context=options)


def look(dsn: str, sizing: Sizing) -> Surveyed:
    """Return the degrees that the planner chooses, and the size of the tables. The query is not run."""
    query = sizing.of(parallel_degree.QUERY)
    assert query is not None  # noqa: S101 — the command line requires it
    with closing(connect(dsn)) as connection:
        require_powerless(connection, "the query would be planned and run")
        if sizing.of(parallel_degree.WRITES):
            _require_primary(connection)
        settings = read_settings(connection)
        planner = Planner(connection, query, settings)
        free = _free_workers(read_pools(connection, settings))
        clients = max(parallel_degree.client_counts(sizing))
        wanted = parallel_degree.degrees(sizing.machine)
        planned = [
            workers
            for workers in wanted
            if planned_workers(planner.plan(parallel_degree.forced(workers))) == workers
        ]
        if max(planned, default=0) == 0:
            raise UsageError(
                "the server plans no parallel workers for this query",
                detail=causes_of(connection, query),
                hint=_LIMITS_HINT,
            )
        given = tuple(workers for workers in planned if workers * clients <= free)
        if max(given, default=0) == 0:
            raise UsageError(
                "the server has too few free workers for this query",
                detail=f"concurrent clients: {clients}; workers free now: {free}",
                hint="raise max_parallel_workers and max_worker_processes, or choose fewer --clients",
            )
        data_directory = settings.get("data_directory")
        return Surveyed(
            connection.info.dbname,
            "" if data_directory is None else data_directory.setting,
            _data_set(connection, planner.plan({}), settings),
            given,
            tuple(workers for workers in wanted if workers not in given),
            {guc.name: guc.setting for guc in settings.values() if guc.source == _OF_THE_CLIENT},
        )


def _require_primary(connection: Connection) -> None:
    """Raise RefusedError if the server is a standby."""
    if connection.execute("SELECT pg_catalog.pg_is_in_recovery()").fetchone() == (True,):
        raise RefusedError(
            "the server is a standby, which accepts no writes",
            hint="leave out --writes, or name its primary with --dsn",
        )


def _free_workers(pools: Pools) -> int:
    """Return how many workers can be launched at once; all of the pool if others' use is unknown."""
    most = min(pools.max_parallel_workers, pools.max_worker_processes)
    known = pools.launchable(most)
    return most if known is None else known


def _data_set(connection: Connection, plan: Plan, settings: Mapping[str, Guc]) -> DataSet:
    """Return the tables that a query reads as a data set of scale 1."""
    pages = sum(table.pages for table in read_tables(connection, scans(plan)).values())
    return DataSet(connection.info.dbname, 1, pages * int(settings["block_size"].setting))


def _left_out(degrees: tuple[int, ...]) -> tuple[str, ...]:
    if not degrees:
        return ()
    listed = ", ".join(map(str, degrees))
    why = "the server does not plan this many workers, or has too few free ones for all clients at once"
    return (f"not measured, because {why}: {listed}; {_LIMITS_HINT}",)


def measure_clients_of(dsn: str, sizing: Sizing, conditions: Conditions, progress: Progress) -> Experiment:
    """Measure the study's loads, in their own databases, at every number of clients of the study.

    Raises: PrivilegeError for a role that may not load the server, RefusedError for a standby, UsageError
    for more clients than the server's connections; ServerError, ConnectionFailedError.
    """
    require_room(dsn, max(clients.client_counts(sizing)))
    cells = clients.workloads(sizing)
    study = clients.study(StudyContext(_AS_FOUND, tuple(cells), conditions.design, sizing=sizing))
    server, _ = find_remote_server(dsn)
    notes = (_CLIENTS_AS_IT_IS, *((_ELSEWHERE,) if server.pid is None else ()), *study.notes)
    with (
        open_remote_arena(dsn, progress) as arena,
        closing(open_store()) as store,
    ):
        run = ExperimentRun(arena, store, progress, cells, is_resumable=False)
        awake = awake_record_of_attached(this_host(), is_here=server.pid is not None)
        context = Context(options=clients.STUDY.grid_options(sizing), awake=awake)
        return run.run(replace(study, notes=notes), budget_s=conditions.budget_s, context=context)
