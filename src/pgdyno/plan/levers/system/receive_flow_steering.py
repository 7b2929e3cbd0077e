"""receive_flow_steering: packets are taken in on the CPU where their backend runs.

What it does:
    Where a receive queue steers packets to other CPUs (see receive_packet_steering), gives the kernel the two
    tables by which it remembers on which CPU each connection is read: rps_sock_flow_entries for the machine,
    rps_flow_cnt for the queue. Either alone does nothing.

Why it helps:
    Without them the CPU is chosen by a hash of the addresses, and the backend reads on another: what one CPU
    has just written into its caches the other has to fetch.

When it hurts:
    Backends that wander from CPU to CPU take their packets with them, and a CPU that is busy with a backend
    gets its packets besides. Without steering it does nothing.

How it is verified:
    The kernel's values, read anew; NET_RX in /proc/softirqs shows which CPUs do the work.

How it is undone:
    The values found are written back.

Evidence:
    The kernel's documentation found 32768 entries to work fairly well on a server under moderate load, all of
    them for a single queue, else a share for each. No figure of our own yet.

References:
    https://docs.kernel.org/networking/scaling.html#rfs-receive-flow-steering
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.host.host import Nic
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
    sysctl_path,
)
from pgdyno.plan.levers.system._network import is_empty, nics, nothing_to_gain

OF_MACHINE = sysctl_path("net.core.rps_sock_flow_entries")
QUEUES = "/sys/class/net/*/queues/*"
OF_QUEUE, MASK = "/rps_flow_cnt", "/rps_cpus"
ENTRIES = 32768  # Linux, networking/scaling.rst; both tables have sizes that are powers of two

LEVER = Lever(
    name="receive_flow_steering",
    title="packets taken in where their backend runs",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    files=(OF_MACHINE, QUEUES + OF_QUEUE),
    reads=(QUEUES + MASK,),
    order_after={"receive_packet_steering": "flows are steered only where packets are"},
)


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Propose the tables for the queues that steer packets."""
    if obstacle := nothing_to_gain(ctx):
        return Skipped(LEVER.name, obstacle)
    steering = [(nic, path) for nic in nics(ctx) for path in _queues(ctx, nic) if _steers(ctx, path)]
    if not steering:
        names = ", ".join(nic.name for nic in nics(ctx))
        return Skipped(LEVER.name, f"no queue of {names} steers packets to other CPUs, which comes first")
    entries = max(ENTRIES, int(ctx.value(OF_MACHINE) or 0))
    wanted = {OF_MACHINE: entries}
    wanted |= {path: _share(entries, nic) for nic, path in steering}
    lines = [
        propose_file(
            ctx,
            LEVER,
            path,
            str(count),
            reason=f"{steering[0][0].name} steers packets to CPUs by a hash, not to where the backend runs",
            evidence="Linux, networking/scaling.rst, suggested configuration of RFS",
        )
        for path, count in wanted.items()
        if int(ctx.value(path) or 0) < count
    ]
    return lines_or_skipped(LEVER, lines, f"flows are steered already, with {entries} entries")


def _queues(ctx: PlanContext, nic: Nic) -> tuple[str, ...]:
    """Return the file with the size of the table of each of the card's receive queues."""
    return ctx.files(QUEUES.replace("*", nic.name, 1) + OF_QUEUE)


def _steers(ctx: PlanContext, path: str) -> bool:
    return not is_empty(ctx.value(path.removesuffix(OF_QUEUE) + MASK) or "")


def _share(entries: int, nic: Nic) -> int:
    """Return a queue's part of the entries, rounded up as the kernel does."""
    queues = nic.rx_queues.or_else(1)
    return 1 << ((entries // queues) - 1).bit_length()


def _concerned(ctx: PlanContext) -> Sequence[str]:
    return [OF_MACHINE, *(path for nic in nics(ctx) for path in _queues(ctx, nic))]


detect = detect_files(LEVER, plan, _concerned)
