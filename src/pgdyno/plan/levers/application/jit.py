"""jit: no just-in-time compilation of statements too short to benefit.

What it does:
    Switches just-in-time compilation off for transaction processing, if the build has it.

Why it helps:
    A statement with an estimated cost above jit_above_cost is compiled first, which takes tens to hundreds
    of milliseconds. Transactions are short, and estimates are often far too high.

When it hurts:
    Analytical statements over many rows lose the benefit of compilation: set jit = on in their sessions.

How it is verified:
    pg_settings of the running server; EXPLAIN (ANALYZE) shows no "JIT:" lines.

How it is undone:
    The value found is restored; requires a reload.

Evidence:
    A user's report of 40 ms becoming 22 s, and others like it. Beta versions of 19 have it off by default.

References:
    https://www.postgresql.org/docs/current/jit.html
    https://github.com/Secure-Compliance-Solutions-LLC/GVM-Docker/pull/125
    https://github.com/openstreetmap/operations/issues/386
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, Maturity, PlanContext, Planned, Risk

LEVER = Lever(
    name="jit",
    title="no just-in-time compilation of short statements",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    maturity=Maturity.STABLE,
    settings=("jit",),
    tried={"jit": ("on", "off")},
)


def plan(ctx: PlanContext) -> Planned:
    """Switch it off where it exists."""
    if ctx.settings.text("jit") == "off":
        return LEVER.skip("already off")
    has_jit = ctx.server.capabilities.has_jit
    if not has_jit.is_known:
        return LEVER.skip(ctx.why_unknown(has_jit))
    if not has_jit.or_else(default=False):
        return LEVER.skip("this build has no just-in-time compilation, so the setting has no effect")
    line = LEVER.propose(
        ctx,
        "jit",
        "off",
        reason=f"the goal is {ctx.goal}: compilation takes longer than such statements run",
        evidence='PostgreSQL manual, "Just-in-Time Compilation"; GVM-Docker #125: 40 ms became 22 s',
    )
    return LEVER.planned([line], "already off")
