"""Capture a workload from a running server: its statistics are read twice, its sessions watched between."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace

from pgdyno.base.errors import ServerError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.sampling.sessions import Sessions, watch_sessions
from pgdyno.postgres.sampling.statement_statistics import find_statement_statistics
from pgdyno.postgres.statement_counts import NewCounts, StatementCounts, difference, merged
from pgdyno.workload.capture.pauses import with_pauses
from pgdyno.workload.capture.statements import same_texts
from pgdyno.workload.capture.workload import Observation, assemble
from pgdyno.workload.schema import read_schema, require_parsing

_LEAST_PAUSES = 20  # as many as a file has of them


@dataclass(frozen=True)
class CaptureRequest:
    """A server, a name for its workload, and how long to watch it."""

    dsn: str | None
    name: str
    seconds: float


def capture(request: CaptureRequest, progress: Progress) -> CapturedWorkload:
    """Return the workload of a database in the next seconds. Nothing is written to the server.

    Raises: ConnectionFailedError; ServerError if its statistics are not there, closed to the role, or reset
    meanwhile; UsageError if nothing happened.
    """
    with closing(connect(request.dsn)) as connection:
        require_parsing(connection)
        statistics = find_statement_statistics(connection)
        progress.step(f"watching the sessions of {connection.info.dbname}")
        before = statistics.read()
        sessions = watch_sessions(
            connection, request.seconds, lambda done_s: progress.advance(done_s, request.seconds)
        )
        counted = _counted(before, statistics.read())
        progress.step(f"looking at {len(counted.seen)} statements")
        texts = statistics.texts(counted.seen)
        same = same_texts(texts)
        schema = read_schema(connection, texts)
        seen = sessions.sightings
        observed = Observation(
            name=request.name,
            server_version=schema.server_version,
            cluster=schema.cluster,
            database=schema.database,
            search_path=schema.search_path,
            seconds=request.seconds,
            clients=max(1.0, sessions.mean_in_transactions),
            transactions=counted.transactions - sessions.looks,
            counted=merged(counted, same),
            texts=texts,
            types=schema.types,
            columns=schema.columns,
            sightings=[replace(one, statement=same.get(one.statement, one.statement)) for one in seen],
        )
    workload = assemble(observed)
    if not workload.transactions:
        raise UsageError(
            f"nothing that can be replayed happened in {request.seconds:.0f} s",
            detail=why_omitted(workload),
            hint="is this the database that the application uses? --for 10m watches for longer",
        )
    return _with_pauses(workload, sessions)


def _with_pauses(workload: CapturedWorkload, sessions: Sessions) -> CapturedWorkload:
    """Return a workload with the pauses that were seen, or with a note where those were few."""
    pauses_s = sessions.pauses.seconds
    if len(pauses_s) >= _LEAST_PAUSES:
        return with_pauses(workload, sessions.mean_in_transactions, pauses_s)
    note = (
        f"how long sessions pause between transactions is not known: the end of {len(pauses_s)} pauses was "
        f"seen, and {_LEAST_PAUSES} are wanted; watching for longer (--for 10m) sees more"
    )
    return replace(workload, notes=(*workload.notes, note))


def _counted(before: StatementCounts, after: StatementCounts) -> NewCounts:
    counted = difference(before, after)
    if counted is None:
        raise ServerError(
            "the statistics of statements were reset while they were watched",
            hint="capture again, when nothing resets pg_stat_statements",
        )
    return counted


def why_omitted(workload: CapturedWorkload) -> str:
    """Count the statements that are not replayed, and give the reason of the costliest."""
    count = len(workload.omitted)
    first = f"; of the first: {workload.omitted[0].why}" if count else ""
    return f"statements that are not replayed: {count}{first}"
