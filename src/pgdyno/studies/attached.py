"""``run parallel-degree`` and ``run clients`` on an attached server.

The best degree of a query is measured on the server's own data. Sessions alone are set. They only read,
unless they may write; then each execution is rolled back. A degree that the planner does not give there
(the table's size or option allows no more, or the pools are smaller) is left out and named.

Clients may be near or far. On a machine of its own a client takes nothing from the server, which is what a
client on the server's machine does. In return the network is part of every figure, and what the server
spends is not seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from pgdyno.apply.host_state import this_host
from pgdyno.base.errors import RefusedError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.measure.arenas.attached_server import find_remote_server
from pgdyno.measure.arenas.opening import open_own_data_arena, open_remote_arena
from pgdyno.measure.arenas.room_for_load import require_room
from pgdyno.measure.awake import as_booted_beside
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
_OF_THE_CLIENT = "client"  # pg_settings.source of what libpq passes on: options=, PGOPTIONS, PGTZ, …
_NONE = "pgdyno explain-degree names the limits to raise"
_DEGREES_AS_IT_IS = (
    "measured on a running server as it is: its other work at the time is in the figures, it was not "
    "restarted for the rounds, and jit is as it has it"
)
_CLIENTS_AS_IT_IS = (
    "measured on a running server as it is: its other work at the time is in the figures, and it was "
    "not restarted for the rounds, which only get their data afresh"
)
_ELSEWHERE = (
    "the server is not proven to run on the clients' host: its CPU time was not seen, and a network between "
    "them is part of every figure"
)


@dataclass(frozen=True)
class Surveyed:
    """Facts about the server, read before measuring."""

    database: str
    data_directory: str
    data_set: DataSet
    degrees: tuple[int, ...]
    left_out: tuple[int, ...]
    session_settings: Mapping[str, str]  # of the connection string and libpq's environment


def measure_degree_of(dsn: str, sizing: Sizing, conditions: Conditions, progress: Progress) -> Experiment:
    """Measure the query of ``sizing`` at every degree that the server can give it.

    Raises: UsageError if that is no other than 0; ServerError, ConnectionFailedError.
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
        awake = as_booted_beside(this_host(), is_here=True)
        options = Context(options=parallel_degree.STUDY.grid_options(sizing), awake=awake)
        return run.run(study, budget_s=conditions.budget_s, context=options)


def look(dsn: str, sizing: Sizing) -> Surveyed:
    """Find out which degrees the planner gives, and how large the tables are. Runs nothing."""
    query = sizing.of(parallel_degree.QUERY)
    assert query is not None  # noqa: S101 — the command line has asked for it
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
                hint=_NONE,
            )
        given = tuple(workers for workers in planned if workers * clients <= free)
        if max(given, default=0) == 0:
            raise UsageError(
                "the server has too few workers free for this query",
                detail=f"clients at once: {clients}; workers free now: {free}",
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
    """Raise RefusedError if nothing can be written there."""
    if connection.execute("SELECT pg_catalog.pg_is_in_recovery()").fetchone() == (True,):
        raise RefusedError(
            "the server is a standby, where nothing can be written",
            hint="leave --writes out, or name its primary with --dsn",
        )


def _free_workers(pools: Pools) -> int:
    """Return the workers that can be launched at once, as far as the use by others is known."""
    most = min(pools.max_parallel_workers, pools.max_worker_processes)
    known = pools.launchable(most)
    return most if known is None else known


def _data_set(connection: Connection, plan: Plan, settings: Mapping[str, Guc]) -> DataSet:
    """Return the tables that a query reads as they are: their size is that of a scale of one."""
    pages = sum(table.pages for table in read_tables(connection, scans(plan)).values())
    return DataSet(connection.info.dbname, 1, pages * int(settings["block_size"].setting))


def _left_out(degrees: tuple[int, ...]) -> tuple[str, ...]:
    if not degrees:
        return ()
    listed = ", ".join(map(str, degrees))
    why = "the server does not plan so many workers, or has too few free for all clients at once"
    return (f"not measured, because {why}: {listed}; {_NONE}",)


def measure_clients_of(dsn: str, sizing: Sizing, conditions: Conditions, progress: Progress) -> Experiment:
    """Measure the study's loads, in databases of their own, by every number of clients in question.

    Raises: PrivilegeError for a role that may not load the server, RefusedError for a standby, UsageError
    for more clients than the server has connections for; ServerError, ConnectionFailedError.
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
        awake = as_booted_beside(this_host(), is_here=server.pid is not None)
        context = Context(options=clients.STUDY.grid_options(sizing), awake=awake)
        return run.run(replace(study, notes=notes), budget_s=conditions.budget_s, context=context)
