"""Replay a captured workload on a copy of its database, and compare it with the original."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pgdyno.base.errors import RefusedError, ServerError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.load import driver
from pgdyno.load._contract import MOST_GIVEN_UP, LoadRequest, Target
from pgdyno.load.captured import captured_options
from pgdyno.load.discovery import find_driver
from pgdyno.load.driver import ArmTarget
from pgdyno.load.driver_process import DriverProcess
from pgdyno.load.timed_run import TimedRun, run_for
from pgdyno.measure.arenas.attached_server import find_remote_server
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.model.experiments.likeness import Likeness
from pgdyno.model.experiments.workload import CAPTURED
from pgdyno.postgres.connection.connection import connect, dsn_of, require_no_pooler
from pgdyno.postgres.connection.control_connection import READING, ControlConnection
from pgdyno.postgres.connection.privileges import require_powerless
from pgdyno.postgres.inspection.columns import foreign_tables, read_identity
from pgdyno.postgres.process.local_machine import online_cpus, workspace
from pgdyno.postgres.sampling.statement_statistics import find_statement_statistics
from pgdyno.postgres.statement_counts import difference
from pgdyno.workload.capture.likeness import ReplayedLoad, likeness, seen_by_name
from pgdyno.workload.column_draws import read_draws
from pgdyno.workload.invariants import Invariants


@dataclass(frozen=True)
class ReplayPace:
    """When transactions start: at ``rate_tps`` per second, or each client after a pause.

    Pauses are drawn from ``pauses_s``, all equally likely. With neither, each client starts its next
    transaction immediately. ``clients`` None: as many as were active in the original.
    """

    clients: int | None = None
    rate_tps: float | None = None
    pauses_s: tuple[float, ...] = ()


def replay_pace(
    workload: CapturedWorkload,
    clients: int | None,
    rate_tps: float | None,
    times_as_fast: float | None,
    *,
    is_pausing: bool,
) -> ReplayPace:
    """Return the pace for the user's options.

    Raises: UsageError if options conflict, or need figures that the workload does not have.
    """
    if is_pausing:
        return _with_pauses(workload, clients, rate_tps, times_as_fast or 1.0)
    if times_as_fast is None:
        return ReplayPace(clients, rate_tps)
    if rate_tps is not None:
        raise UsageError("--pace and --rate both set the arrival rate", hint="leave out one")
    if workload.transactions_per_s is None:
        raise UsageError(
            f'the workload "{workload.name}" has no recorded transaction rate', hint="give --rate"
        )
    return ReplayPace(clients, times_as_fast * workload.transactions_per_s)


def _with_pauses(
    workload: CapturedWorkload, clients: int | None, rate_tps: float | None, times_as_fast: float
) -> ReplayPace:
    if rate_tps is not None:
        raise UsageError(
            "--pauses and --rate are mutually exclusive",
            detail="at a rate, transactions arrive independently of sessions; with pauses, each session "
            "starts its next transaction after a pause",
            hint="leave out one; --pauses --pace 2 halves the pauses",
        )
    if not workload.pauses_s:
        raise UsageError(
            f'the workload "{workload.name}" has no recorded session pauses',
            hint="capture it from a log with durations and milliseconds, or watch the server for longer; "
            "or write pauses into the file: pauses_s = [0.1, 0.5]",
        )
    pauses_s = tuple(one / times_as_fast for one in workload.pauses_s)
    return ReplayPace(clients or workload.pausing_clients, pauses_s=pauses_s)


_MOST_NAMED = 5  # tables in a message
_SEEDS = 1_000_000_000  # arbitrary: easy to read, and hardly ever the same twice


@dataclass(frozen=True)
class ReplayRequest:
    """Where, for how long and how fast to replay. ``protocol`` None: the original's.

    ``seed`` None: another one each time. With an equal one, a second replay on a copy repeats unique texts.
    ``is_copy``: the user asserts that the database is not the original.
    """

    dsn: str
    seconds: float
    pace: ReplayPace = field(default_factory=ReplayPace)
    protocol: str | None = None
    seed: int | None = None
    is_copy: bool = False


@dataclass(frozen=True)
class Replay:
    """The result of a replay that kept all ``invariants``; ``original_tps`` is None if unknown."""

    run: TimedRun
    original_tps: float | None
    likeness: Likeness
    notes: tuple[str, ...]
    invariants: tuple[str, ...]
    seed: int


def replay(workload: CapturedWorkload, request: ReplayRequest, progress: Progress) -> Replay:
    """Issue a workload on a database, and compare the server's statement counts with the original's.

    Raises: RefusedError for the original; UsageError if the database lacks tables; MeasurementError for a
    broken invariant; ServerError, ConnectionFailedError, GeneratorFailedError.
    """
    with closing(connect(request.dsn)) as connection:
        _require_a_copy(connection, workload, request)
        seed = secrets.randbelow(_SEEDS) if request.seed is None else request.seed
        request = replace(request, dsn=dsn_of(connection, request.dsn))
        database = connection.info.dbname
        statistics = find_statement_statistics(connection, of_others=False)
        progress.step("reading values of columns")
        draws, notes = read_draws(connection, workload)
        options = captured_options(workload, draws)
        invariants = Invariants.before_load(workload, {database: partial(_connect, request.dsn, workload)})
        before = statistics.read()
        run = _run(options, workload, request, database, seed, progress)
        counted = difference(before, statistics.read())
        if counted is None:
            raise ServerError("pg_stat_statements was reset during the replay")
        seen = seen_by_name(workload, statistics.texts(counted.seen), counted.seen)
        failed = sum(one.count for one in run.failures)
        load = ReplayedLoad(seen, run.transactions, failed, _sessions(workload, request.pace))
    invariants.require_kept()
    kept = tuple(one.name for one in workload.invariants)
    return Replay(run, workload.transactions_per_s, likeness(workload, load), notes, kept, seed)


def _sessions(workload: CapturedWorkload, pace: ReplayPace) -> tuple[int, int] | None:
    """Return the sessions of the original and of the replay; None at a rate, which needs no fixed number."""
    if pace.rate_tps is not None:
        return None
    original = workload.pausing_clients if pace.pauses_s else workload.clients
    return original, pace.clients or workload.clients


def _require_a_copy(
    connection: ControlConnection, workload: CapturedWorkload, request: ReplayRequest
) -> None:
    """Refuse the original database: it would carry the load twice, and the replay would write to it."""
    require_no_pooler(connection)
    is_original = read_identity(connection) == (workload.cluster, workload.database)
    if is_original and not request.is_copy:
        raise RefusedError(
            f'"{workload.database}" is the database that this workload was captured from',
            detail="a replay puts load on it and writes to the tables that the workload writes to",
            hint="name a copy with --dsn; add --is-copy if this is a copy with the original's system "
            "identifier, such as a base backup",
        )
    if foreign := foreign_tables(connection):
        raise RefusedError(
            f"the copy has foreign tables: {', '.join(foreign[:_MOST_NAMED])}",
            detail="statements on them would put load on remote servers, and write to them",
            hint="drop these tables in the copy",
        )
    require_powerless(connection, "the statements would be run")


def _connect(dsn: str, workload: CapturedWorkload) -> ControlConnection:
    return connect(dsn, settings={**READING, "search_path": workload.search_path})


def _run(
    options: Mapping[str, object],
    workload: CapturedWorkload,
    request: ReplayRequest,
    database: str,
    seed: int,
    progress: Progress,
) -> TimedRun:
    server, environment = find_remote_server(request.dsn)
    place = workspace()
    clients = request.pace.clients or workload.clients
    load = LoadRequest(
        clients=clients,
        threads=min(clients, len(online_cpus())),
        seed=seed,
        duration_s=int(request.seconds) + 1,
        log_prefix=Path(),
        protocol=request.protocol or workload.protocol,
        rate_tps=request.pace.rate_tps,
        think_times_s=request.pace.pauses_s,
        max_errors=MOST_GIVEN_UP,
    )
    with place.measuring(), place.scratch() as scratch:
        target = Target(
            server.host, server.port, server.user, database, {"search_path": workload.search_path}
        )
        job = driver.job([ArmTarget(workload.name, target)], CAPTURED, options, load)
        process = DriverProcess(
            argv=find_driver(scratch).serve(),
            wrap=place.account.command,
            environment={**place.account.environment(), **environment},
            output_file=scratch / "driver-replay.out",
        )
        progress.step(f"replaying {workload.name} with {clients} clients")
        with closing(process):
            return run_for(
                process, job, request.seconds, lambda done_s: progress.advance(done_s, request.seconds)
            )
