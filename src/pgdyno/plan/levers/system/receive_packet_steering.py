"""receive_packet_steering: all CPUs process packets of a network card that uses only one.

What it does:
    For a network card with one receive queue, distributes its packets to all CPUs that the server may use
    (rps_cpus), on machines with 4 or more CPUs and one NUMA node.

Why it helps:
    One queue has one interrupt, and the CPU that handles it does the TCP work for all clients: it is busy
    while others are idle, and its backends are slow.

When it hurts:
    Every packet costs an inter-processor interrupt. With two or three CPUs, or a queue per CPU, there is no
    gain in return.

How it is verified:
    The mask is read back from the kernel; NET_RX in /proc/softirqs shows which CPUs do the work.

How it is undone:
    The mask found is written back.

Evidence:
    The kernel's documentation suggests it for cards with a single queue, and calls it redundant if every CPU
    has a queue. Amazon advises against it for its Graviton machines, which have cards with several queues.
    Not yet measured by pgdyno.

References:
    https://docs.kernel.org/networking/scaling.html#rps-receive-packet-steering
    https://github.com/aws/aws-graviton-getting-started/tree/main/perfrunbook
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.host.host import Nic
from pgdyno.plan.levers._contract import Layer, Lever, Need, PlanContext, Planned, Risk
from pgdyno.plan.levers.system._network import cpus, is_empty, mask_of, nics, nothing_to_gain

FIRST_QUEUE = "/sys/class/net/*/queues/rx-0/rps_cpus"
FEWEST_CPUS = 4  # arbitrary: with fewer, the CPU with the interrupt is a large share of the machine anyway

LEVER = Lever(
    name="receive_packet_steering",
    title="packets of a single queue processed by all CPUs",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    files=(FIRST_QUEUE,),
    is_instant=True,
    needs=(Need.CPUS,),
)


def plan(ctx: PlanContext) -> Planned:
    """Propose it for the cards with one queue."""
    if obstacle := nothing_to_gain(ctx) or _why_not_here(ctx):
        return LEVER.skip(obstacle)
    left = {nic.name: _why_left(ctx, nic) for nic in nics(ctx)}
    lines = [
        LEVER.propose_file(
            ctx,
            _path(nic),
            mask_of(cpus(ctx)),
            reason=f"{nic.name} has one receive queue: one of {len(cpus(ctx))} CPUs receives for all clients",
            evidence="Linux, networking/scaling.rst, suggested configuration of RPS",
        )
        for nic in nics(ctx)
        if left[nic.name] is None
    ]
    return LEVER.planned(lines, "; ".join(why for why in left.values() if why is not None))


def _why_not_here(ctx: PlanContext) -> str | None:
    count = len(cpus(ctx))
    if count < FEWEST_CPUS:
        return f"{count} CPUs: inter-processor interrupts would cost as much as one of them saves"
    nodes = None if ctx.host is None else ctx.host.cpu.numa_nodes.or_none()
    is_one = nodes is None or nodes == 1
    return None if is_one else f"{nodes} NUMA nodes: packets should stay on the network card's node"


def _why_left(ctx: PlanContext, nic: Nic) -> str | None:
    queues, found = nic.rx_queues.or_none(), ctx.value(_path(nic))
    if queues is None or found is None:
        return f"the queues of {nic.name} are not known"
    if queues > 1:
        return f"{nic.name} has {queues} receive queues, each with its own interrupt"
    return None if is_empty(found) else f"{nic.name} already steers packets ({found})"


def _path(nic: Nic) -> str:
    return FIRST_QUEUE.replace("*", nic.name)


def concerned(ctx: PlanContext) -> Sequence[str]:
    """Return the files that it may write."""
    return [_path(nic) for nic in nics(ctx) if ctx.value(_path(nic)) is not None]
