"""halt_polling: idle CPUs poll for work for a while before they sleep.

What it does:
    In a KVM guest: makes the guest's kernel poll for 200 µs before it halts an idle CPU
    (haltpoll.guest_halt_poll_ns), from the first idle period on and without shrinking. On a physical machine
    with a cpuidle driver: disallows any wake-up latency (pm_qos_resume_latency_us = n/a), so that idle CPUs
    poll all the time.

Why it helps:
    A statement wakes two processes, the backend and its client, mostly on idle CPUs. In a guest, the
    hypervisor wakes a halted CPU, which takes 10 to 120 µs; a polling CPU notices the work directly.

When it hurts:
    A polling CPU takes power, or the host's CPU time: other guests, and the other thread of a core, become
    slower; instance types with CPU credits use them up. In a KVM guest the module may also have disabled
    the host's polling for this guest.

How it is verified:
    The kernel files are read back; pgdyno inspect --probe measures the wake-up latency. If it does not
    decrease, accelerate and apply do not change the machine.

How it is undone:
    The values found are written back; the CPUs' polling times shrink again within a few idle periods.

Evidence:
    Throughput +44.9 % (24.4 to 68.9) read-only and +35.3 % (25.1 to 46.3) read-write, in a guest with
    wake-ups of 115 µs, with polling 10 µs; interleaved, 8 rounds, 4 clients. In a guest with 17 and 4 µs,
    read-only: +107 % (90 to 125) at 1 client, +20.4 % (16.8 to 24.2) at 2, +11.1 % (8.5 to 13.8) at 4, +12.9
    % (7.3 to 18.8) at 16; read-write +133, +32.5, +18.0, +16.7 % (docs/results). SAP measured 3 to 12 % with
    HANA (Linux, commit 2cffe9f6b).

References:
    https://docs.kernel.org/virt/guest-halt-polling.html
    https://docs.kernel.org/virt/kvm/halt-polling.html
    https://docs.kernel.org/admin-guide/pm/cpuidle.html
"""

from __future__ import annotations

from pgdyno.host.cpu_idling import HALT_POLLING, LATENCY, LONGEST_POLL_NS, POLL_NS, POLLING
from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk

NO_LATENCY = "n/a"
DRIVER = "/sys/devices/system/cpu/cpuidle/current_driver"
HALTPOLL, NONE = "haltpoll", "none"
_ADVICE = (
    "this KVM guest has no polling driver. modprobe cpuidle_haltpoll loads one; it also disables the host's "
    "polling for this guest, so measure before and after: pgdyno inspect --probe. pgdyno loads no modules"
)

LEVER = Lever(
    name=HALT_POLLING,
    title="idle CPUs poll before they sleep",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    files=(*POLLING, LATENCY),
    reads=(DRIVER,),
    facts=("host.cpu.virtualisation",),
    is_instant=True,
    touches_wakeups=True,
)


def plan(ctx: PlanContext) -> Planned:
    """Propose the parameters for the machine's cpuidle driver."""
    machine = str(ctx.known("host.cpu.virtualisation"))
    driver = ctx.value(DRIVER) or NONE
    if ctx.value(POLL_NS) is not None:
        return _polling(ctx, machine)
    if driver not in (NONE, HALTPOLL):
        return _no_latency(ctx, driver)
    if "kvm" in machine:
        return LEVER.skip(_ADVICE)
    return LEVER.skip(f"no driver puts idle CPUs to sleep (cpuidle driver: {driver})")


def _polling(ctx: PlanContext, machine: str) -> Planned:
    found = ctx.value(POLL_NS) or ""
    if "kvm" not in machine:
        return LEVER.skip(f"haltpoll is for KVM guests, and this is a guest of: {machine}")
    if found.isdecimal() and int(found) >= LONGEST_POLL_NS:
        return LEVER.skip(f"idle CPUs already poll for {found} ns")
    lines = [
        LEVER.propose_file(
            ctx,
            path,
            value,
            reason=f"a CPU polls for {found} ns and then halts; the hypervisor must wake a halted CPU",
            evidence="pgdyno's measurement, docs/decisions/0027; Linux, virt/guest-halt-polling.rst",
        )
        for path, value in POLLING.items()
    ]
    return LEVER.planned(lines, "idle CPUs already poll")


def _no_latency(ctx: PlanContext, driver: str) -> Planned:
    lines = [
        LEVER.propose_file(
            ctx,
            path,
            NO_LATENCY,
            reason=f"{driver} puts idle CPUs to sleep, and statements wait for their wake-up",
            evidence="Linux, admin-guide/pm/cpuidle.rst, section on PM QoS",
        )
        for path in ctx.files(LATENCY)
    ]
    return LEVER.planned(lines, f"{driver} is already not allowed any latency")
