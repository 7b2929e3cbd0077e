"""cpu_governor: CPUs run at their highest frequency instead of following the load.

What it does:
    Sets the frequency governor of every policy to performance, where the kernel offers it.

Why it helps:
    Other governors raise the frequency only after they observe load. A backend that waits for its client
    between short statements appears idle to them, and runs its next statement on a slow CPU.

When it hurts:
    It increases power consumption and heat, even when idle; on a machine limited by either, all cores
    together may become slower.

How it is verified:
    The governor of each policy is read back from the kernel.

How it is undone:
    The governor found is written back; intel_pstate and amd-pstate then restore the energy preference.

Evidence:
    TuneD's postgresql profile does this (through throughput-performance); not measured by pgdyno yet. Virtual
    machines have no governor: the hypervisor's decides.

References:
    https://docs.kernel.org/admin-guide/pm/cpufreq.html
    https://docs.kernel.org/admin-guide/pm/intel_pstate.html
    https://github.com/redhat-performance/tuned/blob/master/profiles/throughput-performance/tuned.conf
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk

# Each policy once: the directories cpu0, cpu1, … show the policy of each CPU repeatedly.
POLICY = "/sys/devices/system/cpu/cpufreq/*"
GOVERNOR = "/scaling_governor"
OFFERED = "/scaling_available_governors"
PERFORMANCE = "performance"

LEVER = Lever(
    name="cpu_governor",
    title="CPUs at their highest frequency",
    layer=Layer.HARDWARE,
    risk=Risk.SHARED,
    files=(POLICY + GOVERNOR,),
    reads=(POLICY + OFFERED,),
)


def plan(ctx: PlanContext) -> Planned:
    """Propose performance for every policy that offers it."""
    paths = ctx.files(POLICY + GOVERNOR)
    lines = [
        LEVER.propose_file(
            ctx,
            path,
            PERFORMANCE,
            reason=f"with {ctx.value(path)}, a CPU may still be slow when a short statement begins",
            evidence="Linux, admin-guide/pm/cpufreq.rst; TuneD's profile postgresql does it",
        )
        for path in paths
        if PERFORMANCE in (ctx.value(path.removesuffix(GOVERNOR) + OFFERED) or "").split()
    ]
    found = ", ".join(sorted({ctx.value(path) or "none" for path in paths}))
    return LEVER.planned(lines, f"the governor is {found}, and no faster one is available")
