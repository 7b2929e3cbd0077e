"""receive_flow_steering: packets are processed on the CPU of their backend.

What it does:
    If a receive queue steers packets to other CPUs (see receive_packet_steering), sizes the kernel's two
    tables that record the reading CPU of each connection: rps_sock_flow_entries for the machine, rps_flow_cnt
    for the queue. Neither has an effect alone.

Why it helps:
    Without them a hash of the addresses chooses the CPU, and the backend reads on a different one, which must
    fetch the data from the first CPU's caches.

When it hurts:
    Packet processing follows backends that migrate between CPUs, and a CPU busy with a backend must process
    its packets too. Without packet steering it has no effect.

How it is verified:
    The values are read back from the kernel; NET_RX in /proc/softirqs shows which CPUs do the work.

How it is undone:
    The values found are written back.

Evidence:
    According to the kernel's documentation, 32768 entries work fairly well on a moderately loaded server; a
    single queue gets all of them, several queues a share each. Not yet measured by pgdyno.

References:
    https://docs.kernel.org/networking/scaling.html#rfs-receive-flow-steering
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.host.host import Nic
from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk, sysctl_path
from pgdyno.plan.levers.system._network import is_empty, nics, nothing_to_gain

OF_MACHINE = sysctl_path("net.core.rps_sock_flow_entries")
QUEUES = "/sys/class/net/*/queues/*"
OF_QUEUE, MASK = "/rps_flow_cnt", "/rps_cpus"
ENTRIES = 32768  # Linux, networking/scaling.rst; both tables have sizes that are powers of two

LEVER = Lever(
    name="receive_flow_steering",
    title="packets processed on the CPU of their backend",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    files=(OF_MACHINE, QUEUES + OF_QUEUE),
    reads=(QUEUES + MASK,),
    order_after={"receive_packet_steering": "flow steering requires packet steering"},
)


def plan(ctx: PlanContext) -> Planned:
    """Propose the tables for the queues that steer packets."""
    if obstacle := nothing_to_gain(ctx):
        return LEVER.skip(obstacle)
    steering = [(nic, path) for nic in nics(ctx) for path in _queues(ctx, nic) if _steers(ctx, path)]
    if not steering:
        names = ", ".join(nic.name for nic in nics(ctx))
        return LEVER.skip(f"no queue of {names} steers packets to other CPUs, which is required")
    entries = max(ENTRIES, int(ctx.value(OF_MACHINE) or 0))
    wanted = {OF_MACHINE: entries}
    wanted |= {path: _share(entries, nic) for nic, path in steering}
    lines = [
        LEVER.propose_file(
            ctx,
            path,
            str(count),
            reason=f"{steering[0][0].name} steers packets to CPUs by a hash, not to the backend's CPU",
            evidence="Linux, networking/scaling.rst, suggested configuration of RFS",
        )
        for path, count in wanted.items()
        if int(ctx.value(path) or 0) < count
    ]
    return LEVER.planned(lines, f"flows are already steered, with {entries} entries")


def _queues(ctx: PlanContext, nic: Nic) -> tuple[str, ...]:
    """Return the file with the table size of each of the card's receive queues."""
    return ctx.files(QUEUES.replace("*", nic.name, 1) + OF_QUEUE)


def _steers(ctx: PlanContext, path: str) -> bool:
    return not is_empty(ctx.value(path.removesuffix(OF_QUEUE) + MASK) or "")


def _share(entries: int, nic: Nic) -> int:
    """Return a queue's share of the entries, rounded up to a power of two as the kernel does."""
    queues = nic.rx_queues.or_else(1)
    return 1 << ((entries // queues) - 1).bit_length()


def concerned(ctx: PlanContext) -> Sequence[str]:
    """Return the files that it may write."""
    return [OF_MACHINE, *(path for nic in nics(ctx) for path in _queues(ctx, nic))]
