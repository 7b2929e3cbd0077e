"""idle_states: idle CPUs avoid idle states that take longer to leave than a short statement.

What it does:
    Disables, on every CPU, the idle states (C-states) that take 100 µs or more to leave. Shallower ones stay
    enabled.

Why it helps:
    A backend waits for its client between statements. If its CPU enters a deep state during the wait, the
    next statement starts only after the wake-up.

When it hurts:
    It increases the power consumption of an idle machine. Processors run busy cores faster while others are
    in deep states: a server that uses few of its cores can become slower.

How it is verified:
    The kernel files are read back. They do not show which states were used in the meantime.

How it is undone:
    The states are enabled again.

Evidence:
    TuneD's postgresql profile goes further: it allows 1 µs (force_latency). Not yet measured by pgdyno. The
    limit is arbitrary: ten times the 9 µs of a round trip over a Unix socket on pgdyno's test machine.

References:
    https://docs.kernel.org/admin-guide/pm/cpuidle.html
    https://github.com/redhat-performance/tuned/blob/master/profiles/postgresql/tuned.conf
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk

STATE = "/sys/devices/system/cpu/*/cpuidle/*"
DISABLE, LATENCY = "/disable", "/latency"
NAMES = "/sys/devices/system/cpu/cpu0/cpuidle/*/name"
ALLOWED = "/sys/devices/system/cpu/*/power/pm_qos_resume_latency_us"
NO_LATENCY = "n/a"
LIMIT_US = 100

LEVER = Lever(
    name="idle_states",
    title="no deep idle states",
    layer=Layer.HARDWARE,
    risk=Risk.SHARED,
    files=(STATE + DISABLE,),
    reads=(STATE + LATENCY, NAMES, ALLOWED),
    touches_wakeups=True,
    order_after={"halt_polling": "CPUs that must not sleep use no idle states"},
)


def plan(ctx: PlanContext) -> Planned:
    """Propose to disable idle states with a long exit latency."""
    if (allowed := ctx.files(ALLOWED)) and all(ctx.value(path) == NO_LATENCY for path in allowed):
        return LEVER.skip("idle CPUs do not sleep: pm_qos_resume_latency_us is n/a on all of them")
    latencies_us = {path: _latency_us(ctx, path) for path in ctx.files(STATE + DISABLE)}
    lines = [
        LEVER.propose_file(
            ctx,
            path,
            "1",
            reason=f"leaving {_name(ctx, path)} takes up to {latency_us} µs",
            evidence="Linux, admin-guide/pm/cpuidle.rst; TuneD's profile postgresql allows 1 µs",
        )
        for path, latency_us in latencies_us.items()
        if latency_us >= LIMIT_US
    ]
    if lines:
        already = f"all states that take {LIMIT_US} µs or more to leave are already disabled"
        return LEVER.planned(lines, already)
    slowest_us = max(latencies_us.values())
    return LEVER.skip(f"no state takes {LIMIT_US} µs to leave; the slowest: {slowest_us} µs")


def _latency_us(ctx: PlanContext, path: str) -> int:
    """Return the maximum exit latency of a state; 0 if the kernel does not report it."""
    latency = ctx.value(path.removesuffix(DISABLE) + LATENCY) or ""
    return int(latency) if latency.isdecimal() else 0


def _name(ctx: PlanContext, path: str) -> str:
    """Return a state's name, such as C6; it is the same on all CPUs."""
    state = path.split("/")[-2]
    return ctx.value(NAMES.replace("*", state)) or state
