"""receive_packet_steering: all CPUs process packets, where the network card uses only one.

What it does:
    On a network card with one receive queue lets the CPUs that the server may use process what it receives
    (rps_cpus), on machines with 4 CPUs or more and one NUMA node.

Why it helps:
    One queue has one interrupt, and the CPU that takes it does the TCP work for all clients: it is busy while
    others are idle, and the backends that run there are slow.

When it hurts:
    Every packet costs an interrupt between CPUs. On two or three CPUs, and with a queue for every CPU,
    nothing is gained for it.

How it is verified:
    The kernel's mask, read anew; NET_RX in /proc/softirqs shows which CPUs do the work.

How it is undone:
    The mask found is written back.

Evidence:
    The kernel's documentation suggests it for cards with a single queue, and calls it redundant where every
    CPU has a queue. Amazon advises against it for its Graviton machines, whose cards have several. No figure
    of our own yet.

References:
    https://docs.kernel.org/networking/scaling.html#rps-receive-packet-steering
    https://github.com/aws/aws-graviton-getting-started/tree/main/perfrunbook
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.host.host import Nic
from pgdyno.plan.levers._contract import (
    Layer,
    Lever,
    Maturity,
    Need,
    PlanContext,
    PlanLine,
    Risk,
    Skipped,
    detect_files,
    lines_or_skipped,
    propose_file,
)
from pgdyno.plan.levers.system._network import cpus, is_empty, mask_of, nics, nothing_to_gain

FIRST_QUEUE = "/sys/class/net/*/queues/rx-0/rps_cpus"
FEWEST_CPUS = 4  # arbitrary: below it the CPU with the interrupt is a large part of the machine anyway

LEVER = Lever(
    name="receive_packet_steering",
    title="packets of a single queue taken in by all CPUs",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    files=(FIRST_QUEUE,),
    is_instant=True,
    needs=(Need.CPUS,),
)


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Propose it for the cards with one queue."""
    if obstacle := nothing_to_gain(ctx) or _why_not_here(ctx):
        return Skipped(LEVER.name, obstacle)
    left = {nic.name: _why_left(ctx, nic) for nic in nics(ctx)}
    lines = [
        propose_file(
            ctx,
            LEVER,
            _path(nic),
            mask_of(cpus(ctx)),
            reason=f"{nic.name} has one receive queue: one of {len(cpus(ctx))} CPUs receives from all "
            "clients",
            evidence="Linux, networking/scaling.rst, suggested configuration of RPS",
        )
        for nic in nics(ctx)
        if left[nic.name] is None
    ]
    return lines_or_skipped(LEVER, lines, "; ".join(why for why in left.values() if why is not None))


def _why_not_here(ctx: PlanContext) -> str | None:
    count = len(cpus(ctx))
    if count < FEWEST_CPUS:
        return f"{count} CPUs: what one of them saves, the interrupts between them cost"
    nodes = None if ctx.host is None else ctx.host.cpu.numa_nodes.or_none()
    is_one = nodes is None or nodes == 1
    return None if is_one else f"{nodes} NUMA nodes: packets should stay on the network card's own"


def _why_left(ctx: PlanContext, nic: Nic) -> str | None:
    queues, found = nic.rx_queues.or_none(), ctx.value(_path(nic))
    if queues is None or found is None:
        return f"the queues of {nic.name} are not known"
    if queues > 1:
        return f"{nic.name} has {queues} receive queues, each with its interrupt"
    return None if is_empty(found) else f"{nic.name} steers packets already ({found})"


def _path(nic: Nic) -> str:
    return FIRST_QUEUE.replace("*", nic.name)


def _concerned(ctx: PlanContext) -> Sequence[str]:
    return [_path(nic) for nic in nics(ctx) if ctx.value(_path(nic)) is not None]


detect = detect_files(LEVER, plan, _concerned)
