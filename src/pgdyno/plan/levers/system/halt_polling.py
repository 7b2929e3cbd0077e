"""halt_polling: idle CPUs poll for work for a while before they sleep.

What it does:
    In a guest of KVM: lets the guest's kernel poll for 200 µs before it halts an idle CPU
    (haltpoll.guest_halt_poll_ns), from the first idle period on and without ever giving that up. On a real
    machine whose CPUs are put to sleep by a driver: allows no latency when they wake up
    (pm_qos_resume_latency_us = n/a), so that idle CPUs poll all the time.

Why it helps:
    A statement wakes two processes, the backend and its client, mostly on idle CPUs. In a guest a CPU that
    has halted is woken by the hypervisor, which takes 10 to 120 µs; one that polls sees the work by itself.

When it hurts:
    A CPU that polls takes power, or the host's time: other guests, and the other thread of a core, become
    slower; types of machines with CPU credits use them up. In a guest of KVM the module may also have told
    the host not to poll for it.

How it is verified:
    The kernel's files, read anew; pgdyno inspect --probe measures what a wake-up takes. Where it does not
    get shorter, accelerate and apply leave the machine alone.

How it is undone:
    The values found are written back; CPUs unlearn within some idle periods what they have grown.

Evidence:
    Throughput +44.9 % (24.4 to 68.9) read-only and +35.3 % (25.1 to 46.3) read-write, in a guest whose
    wake-ups took 115 µs and 10 µs with polling; by turns, 8 rounds, 4 clients. In one with 17 and 4 µs,
    read-only: +107 % (90 to 125) at 1 client, +20.4 % (16.8 to 24.2) at 2, +11.1 % (8.5 to 13.8) at 4, +12.9
    % (7.3 to 18.8) at 16; read-write +133, +32.5, +18.0, +16.7 % (docs/results). SAP measured 3 to 12 % with
    HANA (Linux, commit 2cffe9f6b).

References:
    https://docs.kernel.org/virt/guest-halt-polling.html
    https://docs.kernel.org/virt/kvm/halt-polling.html
    https://docs.kernel.org/admin-guide/pm/cpuidle.html
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.host.awake import HALT_POLLING, LATENCY, LONGEST_POLL_NS, POLL_NS, POLLING
from pgdyno.plan.levers._contract import (
    Layer,
    Lever,
    Maturity,
    PlanContext,
    PlanLine,
    Risk,
    Skipped,
    detect_files,
    lines_or_skipped,
    propose_file,
)

NO_LATENCY = "n/a"
DRIVER = "/sys/devices/system/cpu/cpuidle/current_driver"
HALTPOLL, NONE = "haltpoll", "none"
_ADVICE = (
    "this guest of KVM has no driver that polls. modprobe cpuidle_haltpoll loads one; it also asks the host "
    "not to poll for this guest any more, so measure before and after: pgdyno inspect --probe. pgdyno loads "
    "no modules"
)

LEVER = Lever(
    name=HALT_POLLING,
    title="idle CPUs that poll before they sleep",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    files=(*POLLING, LATENCY),
    reads=(DRIVER,),
    facts=("host.cpu.virtualisation",),
    is_instant=True,
    touches_wakeups=True,
)


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Propose the parameters of the machine's cpuidle driver."""
    machine = str(ctx.known("host.cpu.virtualisation"))
    driver = ctx.value(DRIVER) or NONE
    if ctx.value(POLL_NS) is not None:
        return _polling(ctx, machine)
    if driver not in (NONE, HALTPOLL):
        return _no_latency(ctx, driver)
    if "kvm" in machine:
        return Skipped(LEVER.name, _ADVICE)
    return Skipped(LEVER.name, f"nothing puts idle CPUs to sleep by a driver (cpuidle's is {driver})")


def _polling(ctx: PlanContext, machine: str) -> Sequence[PlanLine] | Skipped:
    found = ctx.value(POLL_NS) or ""
    if "kvm" not in machine:
        return Skipped(LEVER.name, f"haltpoll is for guests of KVM, and this is one of: {machine}")
    if found.isdecimal() and int(found) >= LONGEST_POLL_NS:
        return Skipped(LEVER.name, f"idle CPUs poll for {found} ns already")
    lines = [
        propose_file(
            ctx,
            LEVER,
            path,
            value,
            reason=f"a CPU that has halted is woken by the hypervisor, and it polls for {found} ns before",
            evidence="our measurement, docs/decisions/0027; Linux, virt/guest-halt-polling.rst",
        )
        for path, value in POLLING.items()
    ]
    return lines_or_skipped(LEVER, lines, "idle CPUs poll already")


def _no_latency(ctx: PlanContext, driver: str) -> Sequence[PlanLine] | Skipped:
    lines = [
        propose_file(
            ctx,
            LEVER,
            path,
            NO_LATENCY,
            reason=f"{driver} puts idle CPUs to sleep, and statements wait until they have woken up",
            evidence="Linux, admin-guide/pm/cpuidle.rst, section on PM QoS",
        )
        for path in ctx.files(LATENCY)
    ]
    return lines_or_skipped(LEVER, lines, f"no latency is allowed to {driver} already")


detect = detect_files(LEVER, plan)
