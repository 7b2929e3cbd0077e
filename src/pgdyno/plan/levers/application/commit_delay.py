"""commit_delay: a commit waits for others before it flushes the WAL, on scratch servers.

What it does:
    On a scratch server, sets commit_delay to half of the time of an 8 kB flush, and commit_siblings to half
    of the clients, if at least 8 clients write and a flush serves fewer than 1.5 commits. On a running server
    it changes nothing, but explains how to try it.

Why it helps:
    One flush serves all commits with WAL written before it begins. A short wait lets more commits share a
    flush: there are fewer flushes, and the disk and the CPU are free for other work.

When it hurts:
    Every waiting commit takes longer, and with a slow clock source or a busy CPU the wait is longer than the
    setting. Where flushes already serve several commits, the wait gains nothing. Durability is unaffected: a
    commit still returns after its flush.

How it is verified:
    pg_settings of the running server; commits per flush: xact_commit in pg_stat_database, and fsyncs in
    pg_stat_io (18) or wal_sync in pg_stat_wal.

How it is undone:
    The values found are restored; requires a reload.

Evidence:
    The manual: half of the time that pg_test_fsync reports is often the best delay. With 4 clients and a disk
    that flushes 8 kB in 75 µs, 38 µs made no detectable difference: sysbench read-write, +0.7 % (−2.2 to 3.7)
    with CPUs awake, −1.3 % (−4.6 to 2.1) as booted (docs/results, levers of the WAL).

References:
    https://www.postgresql.org/docs/current/wal-configuration.html
    https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-COMMIT-DELAY
"""

from __future__ import annotations

from pgdyno.base.facts import Unknown
from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk
from pgdyno.postgres.statements import ENOUGH_CLIENTS, CommitGrouping

SHARED_ALREADY = 1.5  # arbitrary: from this number of commits per flush, they share flushes without waiting
LONGEST_US = 100_000  # commit_delay's maximum

LEVER = Lever(
    name="commit_delay",
    title="commits wait to share a flush",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    settings=("commit_delay", "commit_siblings"),
    moves_with={"commit_siblings": "commit_delay"},
    touches_wakeups=True,
)


def plan(ctx: PlanContext) -> Planned:
    """Plan it for a load with counted commits; give advice on a running server."""
    if (found := ctx.settings.display("commit_delay")) != "0":
        return LEVER.skip(f"explicitly set to {found} µs")
    if ctx.commits is None:
        return LEVER.skip(
            f"not changed on a running server: commits would take longer. With {ENOUGH_CLIENTS} or more "
            "writing sessions and a slow disk, try half of the time that pg_test_fsync reports",
        )
    commits = ctx.commits.value
    if isinstance(commits, Unknown):
        return LEVER.skip(commits.reason)
    delay_us = min(round(commits.flush_us / 2), LONGEST_US)
    if (obstacle := _obstacle(commits, delay_us)) is not None:
        return LEVER.skip(obstacle)
    values = {"commit_delay": delay_us, "commit_siblings": commits.clients // 2}
    lines = [
        LEVER.propose(
            ctx,
            name,
            str(value),
            reason=f"{_counted(commits)}, which takes {commits.flush_us:.0f} µs for 8 kB",
            evidence='PostgreSQL manual, "WAL Configuration": half of the flush time',
        )
        for name, value in values.items()
    ]
    return LEVER.planned(lines, "already set")


def _obstacle(commits: CommitGrouping, delay_us: int) -> str | None:
    """Return why waiting would gain nothing."""
    if commits.commits_per_flush >= SHARED_ALREADY:
        return f"{_counted(commits)}, without waiting"
    return None if delay_us else f"a flush takes only {commits.flush_us:.1f} µs: nothing to gain"


def _counted(commits: CommitGrouping) -> str:
    load = f"{commits.workload}, {commits.clients} clients"
    return f"{load}: {commits.commits_per_flush:.1f} commits share a flush"
