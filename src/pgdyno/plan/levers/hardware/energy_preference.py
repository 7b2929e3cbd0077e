"""energy_preference: processors that choose their own frequency prefer speed.

What it does:
    Sets the energy preference to performance for every policy, unless the governor already determines it.

Why it helps:
    Processors with HWP (Intel) or CPPC (AMD) choose frequencies themselves; this preference determines how
    much energy they save. The usual default, balance_performance, raises the frequency late.

When it hurts:
    Like the governor: power and heat.

How it is verified:
    The preference of each policy is read back from the kernel.

How it is undone:
    The preference found is written back.

Evidence:
    Not yet measured by pgdyno. In active mode of intel_pstate and amd-pstate, the governor performance sets
    the preference itself and rejects others: nothing remains to be done.

References:
    https://docs.kernel.org/admin-guide/pm/intel_pstate.html
    https://docs.kernel.org/admin-guide/pm/amd-pstate.html
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk

POLICY = "/sys/devices/system/cpu/cpufreq/*"
PREFERENCE = "/energy_performance_preference"
OFFERED = "/energy_performance_available_preferences"
GOVERNOR, DRIVER = "/scaling_governor", "/scaling_driver"
PERFORMANCE = "performance"
ACTIVE_DRIVERS = ("intel_pstate", "amd-pstate-epp")  # their names in active mode

LEVER = Lever(
    name="energy_preference",
    title="processors prefer speed to saving energy",
    layer=Layer.HARDWARE,
    risk=Risk.SHARED,
    files=(POLICY + PREFERENCE,),
    reads=(POLICY + OFFERED, POLICY + GOVERNOR, POLICY + DRIVER),
    order_after={"cpu_governor": "the governor performance may set the preference itself"},
)


def plan(ctx: PlanContext) -> Planned:
    """Propose performance where nothing else sets it."""
    paths = ctx.files(POLICY + PREFERENCE)
    lines = [
        LEVER.propose_file(
            ctx,
            path,
            PERFORMANCE,
            reason=f"with {ctx.value(path)}, the processor raises its frequency late to save energy",
            evidence="Linux, admin-guide/pm/intel_pstate.rst and amd-pstate.rst",
        )
        for path in paths
        if PERFORMANCE in _of_policy(ctx, path, OFFERED).split() and not _is_set_by_governor(ctx, path)
    ]
    found = ", ".join(sorted({ctx.value(path) or "none" for path in paths}))
    if any(_is_set_by_governor(ctx, path) for path in paths):
        return LEVER.planned(lines, f"the governor performance sets it; found: {found}")
    return LEVER.planned(lines, f"the preference is {found}, and no faster one is available")


def _is_set_by_governor(ctx: PlanContext, path: str) -> bool:
    """Whether the governor, as planned or found, determines the preference."""
    is_active = _of_policy(ctx, path, DRIVER) in ACTIVE_DRIVERS
    return is_active and _of_policy(ctx, path, GOVERNOR) == PERFORMANCE


def _of_policy(ctx: PlanContext, path: str, name: str) -> str:
    return ctx.value(path.removesuffix(PREFERENCE) + name) or ""
