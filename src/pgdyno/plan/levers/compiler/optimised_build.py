"""optimised_build: the same PostgreSQL, compiled for this CPU and its load.

What it does:
    Runs the server's data by another build of the same major version, which pgdyno build has made of
    PostgreSQL's own source and has verified.

Why it helps:
    A transaction of OLTP runs through a megabyte of code once, of which processors wait for the instructions
    more than for the data. A compiler that knows which way branches go, and what is called from where, puts
    what runs together side by side.

When it hurts:
    Code for this CPU does not run on an older one. What the training has not reached is placed out of the
    way. Extensions have to be built for it too.

How it is verified:
    Before it is installed, by PostgreSQL's own tests, by answers that are equal to a plain build's to the
    last bit, by data that move both ways, and by crashes. In a measurement, by the server's own version().

How it is undone:
    The data directory is started by the server's former programs again: nothing in it has changed. What
    pgdyno switch has switched, pgdyno revert switches back.

Evidence:
    Our own: docs/guides/build.md. A. Kim (2026): sysbench read-write on 64 CPUs, +20.9 % with profile, link
    time and BOLT over -O3. LLVM's issue 124601: BOLT alone cost 20 % on Graviton3.

References:
    https://clang.llvm.org/docs/UsersManual.html#profile-guided-optimization
    https://github.com/llvm/llvm-project/blob/main/bolt/README.md
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.plan.levers._contract import (
    SERVER,
    Change,
    Detected,
    Effect,
    Layer,
    Lever,
    Maturity,
    PlanContext,
    PlanLine,
    Risk,
    Skipped,
    State,
)

LEVER = Lever(
    name="optimised_build",
    title="a build for this CPU and this load",
    layer=Layer.COMPILER,
    risk=Risk.RESTART,
    maturity=Maturity.PREVIEW,
    chooses_server=True,
)
_ATTACHED = (
    "a running server is not moved to another build by a plan: pgdyno build makes one, pgdyno accelerate "
    "--embedded or --pg-bin measures it, and pgdyno switch lets the server run from it"
)


def detect(ctx: PlanContext) -> Detected:
    """Say whether there is a build to choose; which one a server runs is not its own to tell."""
    outcome = plan(ctx)
    if isinstance(outcome, Skipped):
        return Detected(State.ABSENT, outcome.reason)
    return Detected(State.OFF, f"{outcome[0].change.value} is there")


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Choose the strongest build of the same major version, of several the newest."""
    if ctx.builds is None:
        return Skipped(LEVER.name, _ATTACHED)
    release = divmod(ctx.server.version_num, 10_000)
    major = release[0]
    fitting = [one for one in ctx.builds if one.major == major and one.release >= release]
    if not fitting:
        how = f"pgdyno build --source debian:{major} makes one"
        of = f"PostgreSQL {ctx.server.version} or a later {major}"
        return Skipped(LEVER.name, f"no newer verified build of {of} is here; {how}")
    chosen = max(fitting, key=lambda one: one.strength)  # the first of equals, which is the newest
    return (
        PlanLine(
            change=Change(
                lever=LEVER.name,
                kind=SERVER,
                key="server",
                current=f"PostgreSQL {ctx.server.version}",
                value=chosen.name,
                effect=Effect.RESTART,
            ),
            layer=LEVER.layer,
            reason=f"PostgreSQL {chosen.version}, compiled by {chosen.compiler} with {chosen.recipe}, "
            f"trained on {', '.join(chosen.training) or 'nothing'}; all {chosen.tests} of PostgreSQL's own "
            "tests have passed",
            evidence="docs/guides/build.md",
            risk=LEVER.risk,
            undo="start the data directory by the former programs again; nothing in it has changed",
        ),
    )
