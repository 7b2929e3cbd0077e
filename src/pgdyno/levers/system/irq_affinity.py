"""irq_affinity: which CPUs the network card interrupts.

What it does:
    Reports on how many CPUs the interrupts of a card's queues are, and how they are gathered on few. It
    changes nothing: how many CPUs the network needs depends on the traffic, which no fact of the host tells.

Why it helps:
    A backend that is interrupted while it holds a lock stops all that wait for it. With the interrupts of
    several queues on one CPU the others work undisturbed, and more packets are taken in per interrupt.

When it hurts:
    That one CPU is soon the bottleneck of all clients: watch its share of softirq time (mpstat -P ALL).
    irqbalance, where it runs, writes the affinities anew every ten seconds, and has to be stopped first: the
    report says whether it does.

How it is verified:
    /proc/interrupts counts the interrupts per CPU.

How it is undone:
    There is nothing to undo. By hand: the lists found are written back.

Evidence:
    Amazon's guide for Graviton has irqbalance stopped and queues pinned. No figure of our own yet.

References:
    https://docs.kernel.org/core-api/irq/irq-affinity.html
    https://github.com/aws/aws-graviton-getting-started/tree/main/perfrunbook
"""

from __future__ import annotations

from pgdyno.levers._contract import (
    Layer,
    Lever,
    Maturity,
    PlanContext,
    Risk,
    Skipped,
    detect_report,
    verify_files,
)
from pgdyno.levers.system._network import nics, nothing_to_gain
from pgdyno.model.host import Nic

AFFINITIES = "/proc/irq/*/smp_affinity_list"

LEVER = Lever(
    name="irq_affinity",
    title="interrupts of a network card on few CPUs",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    reads=(AFFINITIES,),
)


def plan(ctx: PlanContext) -> Skipped:
    """Say where each card's interrupts go."""
    if obstacle := nothing_to_gain(ctx):
        return Skipped(LEVER.name, obstacle)
    return Skipped(LEVER.name, "; ".join(_report(ctx, nic) for nic in nics(ctx)))


def _report(ctx: PlanContext, nic: Nic) -> str:
    queues, lists = nic.rx_queues.or_else(0), _lists(ctx, nic)
    if queues < 2:
        return f"{nic.name} has one queue: there is nothing to gather"
    if not lists:
        return f"the interrupts of {nic.name} are not known"
    places = dict.fromkeys(lists.values())
    have = f"{nic.name} has {queues} queues, with {len(lists)} interrupts on CPUs {', '.join(places)}"
    if len(places) == 1 and next(iter(places)).isdecimal():
        return f"{have}: all on one CPU, which has to take in what all clients send"
    numbers = ", ".join(lists)
    owner = ctx.owner_of((AFFINITIES,))
    first = "" if owner is None else f"stop {owner.name}, which would set them again, and "
    return f"{have}. To gather them, {first}write one CPU into {AFFINITIES} of {numbers}"


def _lists(ctx: PlanContext, nic: Nic) -> dict[str, str]:
    """Return the CPUs of each of the card's interrupts, as they are now."""
    paths = {number: AFFINITIES.replace("*", number) for number in nic.irq_affinity.or_else({})}
    return {number: cpus for number, path in paths.items() if (cpus := ctx.value(path)) is not None}


def _is_in_use(ctx: PlanContext) -> bool:
    lists = [_lists(ctx, nic) for nic in nics(ctx) if nic.rx_queues.or_else(0) > 1]
    return bool(lists) and all(len(set(one.values())) == 1 for one in lists)


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
