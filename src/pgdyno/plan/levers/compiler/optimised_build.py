"""optimised_build: the same PostgreSQL, compiled for this CPU and its load.

What it does:
    Runs the server's data with a different build of the same major version, compiled from PostgreSQL's
    source and verified by pgdyno build.

Why it helps:
    An OLTP transaction executes a megabyte of code once; processors wait more for its instructions than for
    data. A compiler that knows branch directions and call sites can place code that runs together next to
    each other.

When it hurts:
    Code for this CPU does not run on an older one. Code that the training did not reach is moved out of the
    way. Extensions must be built for it too.

How it is verified:
    Before installation, by PostgreSQL's test suites, by results identical to a plain build's to the last bit,
    by moving data in both directions, and by crashes. In a measurement, by the server's version().

How it is undone:
    The data directory, which is unchanged, is started with the server's former programs. pgdyno revert undoes
    pgdyno switch.

Evidence:
    pgdyno: docs/guides/build.md. A. Kim (2026): sysbench read-write on 64 CPUs, +20.9 % with PGO, LTO and
    BOLT over -O3. LLVM's issue 124601: BOLT alone cost 20 % on Graviton3.

References:
    https://clang.llvm.org/docs/UsersManual.html#profile-guided-optimization
    https://github.com/llvm/llvm-project/blob/main/bolt/README.md
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import (
    SERVER,
    Change,
    Detected,
    Effect,
    Layer,
    Lever,
    PlanContext,
    PlanLine,
    Planned,
    Risk,
    Skipped,
    State,
)

LEVER = Lever(
    name="optimised_build",
    title="a build for this CPU and this load",
    layer=Layer.COMPILER,
    risk=Risk.RESTART,
    chooses_server=True,
)
_ATTACHED = (
    "a plan does not move a running server to another build: pgdyno build creates one, pgdyno accelerate "
    "--embedded or --pg-bin measures it, and pgdyno switch runs the server with it"
)


def detect(ctx: PlanContext) -> Detected:
    """Return whether a build can be chosen. A server does not report which build it runs."""
    outcome = plan(ctx)
    if isinstance(outcome, Skipped):
        return Detected(State.ABSENT, outcome.reason)
    return Detected(State.OFF, f"{outcome[0].change.value} is available")


def plan(ctx: PlanContext) -> Planned:
    """Choose the strongest build of the same major version, the newest of several equals."""
    if ctx.builds is None:
        return LEVER.skip(_ATTACHED)
    release = divmod(ctx.server.version_num, 10_000)
    major = release[0]
    fitting = [one for one in ctx.builds if one.major == major and one.release >= release]
    if not fitting:
        how = f"pgdyno build --source debian:{major} creates one"
        of = f"PostgreSQL {ctx.server.version} or a later {major}"
        return LEVER.skip(f"no verified build of {of} is available; {how}")
    chosen = max(fitting, key=lambda one: one.strength)  # the first, newest, of equals
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
            f"trained on {', '.join(chosen.training) or 'nothing'}; all {chosen.tests} of PostgreSQL's "
            "tests passed",
            evidence="docs/guides/build.md",
            risk=LEVER.risk,
            undo="start the unchanged data directory with the former programs",
        ),
    )
