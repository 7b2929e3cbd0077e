"""update_process_title: no process title updates per statement, on scratch servers.

What it does:
    Sets update_process_title to off on a scratch server. On a running server it changes nothing, but reports
    the trade-off.

Why it helps:
    A backend writes its title when a statement begins, when it ends, and when it waits for a lock.

When it hurts:
    ps and top no longer show which backend is idle, waiting, or running SELECT. pg_stat_activity still does.

How it is verified:
    pg_settings of the running server; ps shows the same title for a busy and an idle backend.

How it is undone:
    The value found is restored; requires a reload.

Evidence:
    The manual: the overhead is measurable on some platforms; on Windows it is off by default. On Linux a
    title update is a write to memory. sysbench read-only, CPUs awake: equivalent, +0.3 % (−1.1 to 1.7);
    read-write undecided, +3.9 % (0.7 to 7.1) in an experiment with eight comparisons (docs/results).

References:
    https://www.postgresql.org/docs/current/runtime-config-logging.html#GUC-UPDATE-PROCESS-TITLE
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk

LEVER = Lever(
    name="update_process_title",
    title="no process title updates per statement",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    settings=("update_process_title",),
    tried={"update_process_title": ("on", "off")},
)


def plan(ctx: PlanContext) -> Planned:
    """Switch it off on scratch servers, where no one reads the titles."""
    if ctx.settings.text("update_process_title") == "off":
        return LEVER.skip("already off")
    if not ctx.is_scratch:
        reason = "off saves three writes per statement, but ps and top no longer show a backend's activity"
        return LEVER.skip(reason)
    line = LEVER.propose(
        ctx,
        "update_process_title",
        "off",
        reason="three fewer writes per statement; a scratch server does not need process titles",
        evidence='PostgreSQL manual, "update_process_title"; on Windows it is off by default',
    )
    return LEVER.planned([line], "already off")
