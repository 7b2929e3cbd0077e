"""Checkpoint spacing: less frequent checkpoints, spread over the interval.

What it does:
    Raises checkpoint_timeout to 15 minutes, and checkpoint_completion_target to 0.9 where it is lower.

Why it helps:
    The first change of a page after a checkpoint writes the whole page to the WAL, and every changed page
    is written to its file once per checkpoint. A third of the checkpoints means fewer of both.

When it hurts:
    Crash recovery has more WAL to replay, at most as much as max_wal_size allows (see that lever). After a
    crash the server is unavailable for that long.

How it is verified:
    pg_settings of the running server; checkpoints counted in pg_stat_checkpointer (pg_stat_bgwriter
    before 17).

How it is undone:
    The values found are restored; requires a reload.

Evidence:
    The manual describes the trade-off; 0.9 is the default since 14.

References:
    https://www.postgresql.org/docs/current/wal-configuration.html
    https://www.percona.com/blog/importance-of-tuning-checkpoint-in-postgresql
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, Maturity, PlanContext, PlanLine, Planned, Risk

TIMEOUT_S = 15 * 60
COMPLETION_TARGET = "0.9"

LEVER = Lever(
    name="checkpoint_timeout",
    title="less frequent, spread checkpoints",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    maturity=Maturity.STABLE,
    settings=("checkpoint_timeout", "checkpoint_completion_target"),
    shows_late=True,
)


def plan(ctx: PlanContext) -> Planned:
    """Raise both settings to the rule's values."""
    interval = ctx.settings.display("checkpoint_timeout")
    otherwise = f"checkpoints are {interval} apart and spread over that time"
    return LEVER.planned([_timeout(ctx), _completion_target(ctx)], otherwise)


def _timeout(ctx: PlanContext) -> PlanLine | None:
    if ctx.settings.number("checkpoint_timeout") >= TIMEOUT_S:
        return None
    return LEVER.propose(
        ctx,
        "checkpoint_timeout",
        "15min",
        reason=f"every {ctx.settings.display('checkpoint_timeout')} each changed page is written in full to "
        "the WAL and again to its file; the price is a longer crash recovery",
        evidence='PostgreSQL manual, "WAL Configuration"',
    )


def _completion_target(ctx: PlanContext) -> PlanLine | None:
    if ctx.settings.number("checkpoint_completion_target") >= float(COMPLETION_TARGET):
        return None
    return LEVER.propose(
        ctx,
        "checkpoint_completion_target",
        COMPLETION_TARGET,
        reason="spreads a checkpoint's writes over the interval instead of a burst",
        evidence='PostgreSQL manual, "checkpoint_completion_target": reducing it is not recommended',
    )
