"""prefetchers: the processor's hardware prefetching; reported, never planned.

What it does:
    Shows which of a processor's prefetchers are on: Intel's in register 0x1A4, AMD's in C000_0108h. A variant
    can turn some off for a measurement, with a receipt for each CPU: /dev/cpu/0/msr:0x1a4=0xf. On Arm the
    firmware controls them.

Why it helps:
    A prefetcher that mispredicts takes memory bandwidth and cache space from useful accesses. Random reads of
    many backends are often mispredicted.

When it hurts:
    Scans, sorts and copies depend on prefetching, and so does everything else on the machine. Since Linux 5.9
    writing such a register marks the kernel as tainted.

How it is verified:
    The registers are read back.

How it is undone:
    The value found is written back, CPU by CPU. A reboot undoes it too.

Evidence:
    No comparison with PostgreSQL was found; pgdyno's authors estimate ±3 %. Google gained 10 % of throughput
    by turning prefetchers off while memory bandwidth was scarce (Limoncello); Intel calls them neutral or
    positive for most programs. This supports an experiment, but no rule.

References:
    https://software.intel.com/en-us/articles/disclosure-of-hw-prefetcher-control-on-some-intel-processors
    AMD, Processor Programming Reference, MSRC000_0108 [Prefetch Control]
    https://research.google/pubs/limoncello-prefetchers-for-scale/
    https://man7.org/linux/man-pages/man4/msr.4.html
"""

from __future__ import annotations

from pgdyno.host.msr import PREFETCHERS, Register, register_of
from pgdyno.plan.levers._contract import Detected, Layer, Lever, PlanContext, Risk, Skipped, State, why_absent

LEVER = Lever(
    name="prefetchers",
    title="hardware prefetching of the processor",
    layer=Layer.HARDWARE,
    risk=Risk.SHARED,
    files=tuple(f"/dev/cpu/*/msr:{number:#x}" for number in PREFETCHERS),
    is_instant=True,
)


def detect(ctx: PlanContext) -> Detected:
    """Return which prefetchers are off, and on how many CPUs."""
    found = _values(ctx)
    if not found:
        return Detected(State.ABSENT, why_absent(ctx, LEVER))
    are_all_on = not any(register.turned_off(value) for register, value in found.values())
    return Detected(State.ON if are_all_on else State.PARTIAL, _shown(found))


def plan(ctx: PlanContext) -> Skipped:
    """Plan nothing: only a measurement can show whether it helps or hurts."""
    found = _values(ctx)
    key, (_, value) = next(iter(found.items()))
    return LEVER.skip(
        f"an experiment, not a rule: {_shown(found)}; a variant turns some off, for example "
        f"{key}={value | 1:#x} and so on for every CPU",
    )


def _values(ctx: PlanContext) -> dict[str, tuple[Register, int]]:
    """Return the readable registers with their values, by key."""
    keys = [key for pattern in LEVER.files for key in ctx.files(pattern)]
    return {
        key: (register, int(value, 16))
        for key in keys
        if (register := register_of(key)) is not None and (value := ctx.value(key)) is not None
    }


def _shown(found: dict[str, tuple[Register, int]]) -> str:
    off = [names for register, value in found.values() if (names := register.turned_off(value))]
    if not off:
        return f"all are on, on {len(found)} CPUs"
    return f"{', '.join(sorted(set().union(*off)))} off on {len(off)} of {len(found)} CPUs"
