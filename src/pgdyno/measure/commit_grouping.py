"""Count commits per WAL flush of a write workload on a scratch server, for a few seconds."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import closing

from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.host.probing.run_probes import measure_fsync_us
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.load import Loads
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.workload import Workload
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.postgres.statements import ENOUGH_CLIENTS, CommitGrouping

SECONDS = 3.0  # arbitrary: a few hundred flushes of a slow disk
_SOURCE = "xact_commit and flushes of the WAL under the workload"
_WAL_IN_PG_STAT_IO = 18
_COUNTED_SINCE_18 = """
    SELECT d.xact_commit,
           (SELECT pg_catalog.sum(fsyncs) FROM pg_catalog.pg_stat_io
             WHERE object OPERATOR(pg_catalog.=) 'wal' AND context OPERATOR(pg_catalog.=) 'normal')
      FROM pg_catalog.pg_stat_database d
     WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()"""
_COUNTED = """
    SELECT d.xact_commit, (SELECT wal_sync FROM pg_catalog.pg_stat_wal)
      FROM pg_catalog.pg_stat_database d
     WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()"""
_HAS_NO_CLIENTS = """
    SELECT pg_catalog.count(*) OPERATOR(pg_catalog.=) 0 FROM pg_catalog.pg_stat_activity
     WHERE backend_type OPERATOR(pg_catalog.=) 'client backend'
       AND pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()"""
_WAIT_S = 30.0  # takes milliseconds, seconds on a busy host; an early reading would miss counts


def count_commits(
    arm: Arm, loads: Loads, workload: Workload, design: Design, major: int, workspace: Workspace
) -> Fact[CommitGrouping]:
    """Run the workload and count its commits; unknown, with a reason, where commits rarely coincide.

    Raises: GeneratorError, ServerError.
    """
    clients = workload.clients or design.clients
    if workload.is_read_only or workload.step:
        return unknown(f'workload "{workload.name}" does not commit continuously', _SOURCE)
    if clients < ENOUGH_CLIENTS:
        return unknown(f"{clients} clients rarely commit at the same time", _SOURCE)
    with workspace.scratch() as scratch:
        flush_us = measure_fsync_us(scratch)
    if isinstance(flush_us.value, Unknown):
        return Fact(flush_us.value, flush_us.source)
    query = _COUNTED_SINCE_18 if major >= _WAL_IN_PG_STAT_IO else _COUNTED
    before = arm.query(query)
    label = f"commits.{workload.name}"
    with closing(loads.prepare([arm], [label], workload, design, SECONDS, [0])) as turns:
        turns.warm_up(0, SECONDS)
        turns.end()
    loads.forget(label)
    _await_no_clients(arm)  # backends report their statistics when they exit
    after = arm.query(query)
    commits, flushes = (int((late or 0) - (early or 0)) for early, late in zip(before, after, strict=True))
    return Fact(CommitGrouping(workload.name, clients, commits, flushes, flush_us.value), _SOURCE)


def best_grouped(found: Iterable[Fact[CommitGrouping]]) -> Fact[CommitGrouping]:
    """Return the count with most commits per flush; unknown if all are unknown."""
    facts = tuple(found)
    known = {fact: fact.value.commits_per_flush for fact in facts if not isinstance(fact.value, Unknown)}
    if known:
        return max(known, key=lambda fact: known[fact])
    return facts[-1] if facts else unknown("no workload was measured", _SOURCE)


def _await_no_clients(arm: Arm) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not arm.holds(_HAS_NO_CLIENTS) and time.monotonic() < deadline:
        time.sleep(0.05)
