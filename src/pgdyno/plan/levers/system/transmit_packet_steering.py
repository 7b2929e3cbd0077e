"""transmit_packet_steering: each CPU sends through its own queue.

What it does:
    For a network card with a transmit queue for every CPU that the driver has not assigned, gives each CPU
    that the server may use one queue (xps_cpus).

Why it helps:
    A sender takes the queue's lock, and the CPU that handles a packet's completion frees its memory. With a
    queue per CPU, no sender waits for another's lock, and the memory is still in the caches.

When it hurts:
    If CPUs must share queues, the best assignment depends on their caches and on the interrupts: that is left
    to the driver. For cards with one queue there is no choice, and the kernel shows no mask.

How it is verified:
    The masks are read back from the kernel; with many drivers, ethtool -S shows the traffic per queue.

How it is undone:
    The masks found are written back.

Evidence:
    The kernel's documentation prefers one CPU per queue. Many drivers assign them that way. Not yet measured
    by pgdyno.

References:
    https://docs.kernel.org/networking/scaling.html#xps-transmit-packet-steering
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.host.host import Nic
from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk
from pgdyno.plan.levers.system._network import cpus, is_empty, mask_of, nics, nothing_to_gain

QUEUE_MASKS = "/sys/class/net/*/queues/*/xps_cpus"

LEVER = Lever(
    name="transmit_packet_steering",
    title="each CPU sends through its own queue",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    files=(QUEUE_MASKS,),
    without_files="no network card has several transmit queues to choose from",
    facts=("host.limits.cpuset",),
)


def plan(ctx: PlanContext) -> Planned:
    """Propose a queue for each CPU if the queues are not assigned yet."""
    if obstacle := nothing_to_gain(ctx):
        return LEVER.skip(obstacle)
    left = {nic.name: _why_left(ctx, nic) for nic in nics(ctx)}
    lines = [
        LEVER.propose_file(
            ctx,
            path,
            mask_of([cpu]),
            reason=f"any of {len(cpus(ctx))} CPUs may send through any queue of {nic.name}, and then waits "
            "for its lock",
            evidence="Linux, networking/scaling.rst, suggested configuration of XPS",
        )
        for nic in nics(ctx)
        if left[nic.name] is None
        for cpu, path in zip(cpus(ctx), _paths(nic), strict=False)  # there may be more queues than CPUs
    ]
    return LEVER.planned(lines, "; ".join(why for why in left.values() if why is not None))


def _why_left(ctx: PlanContext, nic: Nic) -> str | None:
    queues, count = nic.tx_queues.or_else(0), len(cpus(ctx))
    found = [mask for path in _paths(nic) if (mask := ctx.value(path)) is not None]
    if queues == 1:
        return f"{nic.name} has one transmit queue: no choice"
    if not queues or len(found) < queues:
        return f"the transmit queues of {nic.name} are not known"
    if not all(map(is_empty, found)):
        return f"the transmit queues of {nic.name} are already assigned ({'; '.join(found)})"
    if queues < count:
        have = f"{nic.name} has {queues} transmit queues for {count} CPUs"
        return f"{have}: the sharing is the driver's choice"
    return None


def _paths(nic: Nic) -> list[str]:
    """Return the masks in the order of the queues."""
    directory = f"/sys/class/net/{nic.name}/queues"
    return [f"{directory}/tx-{number}/xps_cpus" for number in range(nic.tx_queues.or_else(0))]


def concerned(ctx: PlanContext) -> Sequence[str]:
    """Return the files that it may write."""
    return [path for nic in nics(ctx) for path in _paths(nic) if ctx.value(path) is not None]
