"""Capture a workload from a running server: read its statistics twice, and sample its sessions in between."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from pgdyno.base.errors import ServerError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.sampling.sessions import Sessions, watch_sessions
from pgdyno.postgres.sampling.statement_statistics import find_statement_statistics
from pgdyno.postgres.statement_counts import NewCounts, StatementCounts, difference, merged
from pgdyno.workload.capture.counted_texts import as_sql
from pgdyno.workload.capture.pauses import with_pauses
from pgdyno.workload.capture.statements import reads_statistics, same_texts
from pgdyno.workload.capture.workload import Observation, assemble
from pgdyno.workload.schema import read_schema, require_parsing, with_casts

_LEAST_PAUSES = 20  # the number of pauses in a workload's file


@dataclass(frozen=True)
class CaptureRequest:
    """A server, a name for its workload, and the duration of the capture in seconds."""

    dsn: str | None
    name: str
    seconds: float


def capture(request: CaptureRequest, progress: Progress) -> CapturedWorkload:
    """Return a database's workload during the next seconds. Nothing is written to the server.

    Raises: ConnectionFailedError; ServerError if its statistics are missing, hidden from the role, or reset
    during the capture; UsageError without any activity.
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
        not_counting = statistics.not_counting()
        progress.step(f"analysing {len(counted.seen)} statements")
        texts = {one: as_sql(text) for one, text in statistics.texts(counted.seen).items()}
        same = same_texts(texts)
        schema = read_schema(connection, texts)
        calls_by_id = defaultdict[int, list[int]](list)
        for one, kept in same.items():
            calls_by_id[kept].append(counted.seen[one].calls)
        seen, waits = sessions.sightings, sessions.waits.waits
        observed = Observation(
            name=request.name,
            server_version=schema.server_version,
            cluster=schema.cluster,
            database=schema.database,
            search_path=schema.search_path,
            seconds=request.seconds,
            clients=max(1.0, sessions.mean_in_transactions),
            sessions=max(1, round(sessions.connected.mean(sessions.looks))),
            counted=merged(_without_monitoring(counted, texts, sessions.looks), same),
            texts=texts,
            types=schema.types,
            columns=schema.columns,
            sightings=[replace(one, statement=same.get(one.statement, one.statement)) for one in seen],
            ended=[
                replace(end, statements=frozenset(same.get(one, one) for one in end.statements))
                for end in sessions.ends.ended
            ],
            waits=[replace(wait, statement=same.get(wait.statement, wait.statement)) for wait in waits],
            calls_by_id=calls_by_id,
            writing=schema.writing,
            named=schema.named,
        )
        observed = with_casts(connection, observed)
    workload = assemble(observed)
    if not workload.transactions:
        raise _no_activity(workload, sessions, request.seconds, not_counting)
    if not_counting:
        note = f"statements are not counted with {', '.join(not_counting)}"
        workload = replace(workload, notes=(*workload.notes, note))
    return with_sampled_pauses(workload, sessions)


def _no_activity(
    workload: CapturedWorkload, sessions: Sessions, seconds: float, not_counting: Sequence[str]
) -> UsageError:
    facts = [why_omitted(workload)]
    hint = "is this the application's database? --for 10m watches longer"
    if not_counting:
        facts.append(f"statements are not counted with {', '.join(not_counting)}")
        hint = "set compute_query_id = auto and pg_stat_statements.track = top for the application's sessions"
    elif sessions.in_transactions and not workload.omitted:
        facts.append(
            f"on average, {sessions.mean_in_transactions:.1f} sessions were in transactions, and "
            "pg_stat_statements counted none of their statements"
        )
        hint = (
            "statements are counted when they end: --for 10m watches longer; a superuser can set "
            "pg_stat_statements.track = none for a session"
        )
    return UsageError(f"no replayable activity within {seconds:.0f} s", detail="; ".join(facts), hint=hint)


def with_sampled_pauses(workload: CapturedWorkload, sessions: Sessions) -> CapturedWorkload:
    """Return a workload with the observed pauses, or with a note if there were too few."""
    pauses_s = sessions.pauses.seconds
    if len(pauses_s) >= _LEAST_PAUSES:
        idle = sessions.connected.mean(sessions.looks) - sessions.mean_in_transactions
        return with_pauses(workload, pauses_s, idle)
    note = (
        f"the pauses of sessions between transactions are unknown: the end of {len(pauses_s)} pauses was "
        f"observed, at least {_LEAST_PAUSES} are needed; watch longer (--for 10m)"
    )
    return replace(workload, notes=(*workload.notes, note))


def _without_monitoring(counted: NewCounts, texts: Mapping[int, str], looks: int) -> NewCounts:
    """Return counts without the transactions of monitoring: one for each query of statistics.

    pgdyno's samples of sessions are among these, or are not counted for its role.
    """
    if counted.ended is None:
        return counted
    queries = sum(its.calls for one, its in counted.seen.items() if reads_statistics(texts.get(one, "")))
    committed = max(0, counted.ended.committed - max(looks, queries))
    return replace(counted, ended=replace(counted.ended, committed=committed))


def _counted(before: StatementCounts, after: StatementCounts) -> NewCounts:
    counted = difference(before, after)
    if counted is None:
        raise ServerError(
            "pg_stat_statements was reset during the capture",
            hint="capture again while nothing resets pg_stat_statements",
        )
    return counted


def why_omitted(workload: CapturedWorkload) -> str:
    """Return the number of omitted statements, and the reason for the costliest one."""
    count = len(workload.omitted)
    first = f"; reason for the costliest: {workload.omitted[0].why}" if count else ""
    return f"statements that cannot be replayed: {count}{first}"
