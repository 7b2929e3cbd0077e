"""irq_affinity: which CPUs the network card interrupts.

What it does:
    Reports on how many CPUs the interrupts of a card's queues are, and how they are gathered on fewer, four
    queues to a CPU. It changes nothing: how many CPUs the network needs depends on the traffic, which no fact
    of the host tells. An experiment tells it.

Why it helps:
    A backend that is interrupted while it holds a lock stops all that wait for it. With the interrupts of
    several queues on one CPU the others work undisturbed, the kernel's code for packets stays in that CPU's
    instruction cache, and more packets are taken in per interrupt.

When it hurts:
    A CPU with the packets of too many clients is the bottleneck of them all: watch its share of softirq time
    (mpstat -P ALL). irqbalance, where it runs, writes the affinities anew every ten seconds, and has to be
    stopped first: the report says whether it does.

How it is verified:
    /proc/interrupts counts the interrupts per CPU.

How it is undone:
    There is nothing to undo. By hand: the lists found are written back.

Evidence:
    The kernel's documentation takes the fewest queues whose CPUs are not saturated for the most efficient,
    and a CPU for each queue for the shortest answers, which is what Amazon's guide for Graviton sets, with
    irqbalance stopped. No figure of our own yet.

References:
    https://docs.kernel.org/networking/scaling.html#rss-receive-side-scaling
    https://docs.kernel.org/core-api/irq/irq-affinity.html
    https://github.com/aws/aws-graviton-getting-started/tree/main/perfrunbook
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

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
from pgdyno.model.hosts.host import Nic

AFFINITIES = "/proc/irq/*/smp_affinity_list"
QUEUES_PER_CPU = 4  # arbitrary: the fewest that no CPU is saturated by are found by trying

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
    if _are_gathered(lists, queues):
        return f"{have}: gathered already, on CPUs that have to receive for all clients"
    first = AFFINITIES.replace("*", next(iter(lists)))
    owner = ctx.owner_of((AFFINITIES,))
    stopping = "" if owner is None else f"stop {owner.name}, which would set them again, and "
    return (
        f"{have}. To try fewer, {stopping}gather them in a variant: {_gathered(lists, queues)} "
        f"(each as {first}=CPU)"
    )


def _are_gathered(lists: Mapping[str, str], queues: int) -> bool:
    places = set(lists.values())
    return len(places) <= math.ceil(queues / QUEUES_PER_CPU) and all(map(str.isdecimal, places))


def _gathered(lists: Mapping[str, str], queues: int) -> str:
    """Return which interrupts go to which CPU, neighbours together, on CPUs that may have them now."""
    cpus = sorted({cpu for text in lists.values() for cpu in _cpus(text)})
    chosen = cpus[: math.ceil(queues / QUEUES_PER_CPU)]
    share = math.ceil(len(lists) / len(chosen))
    groups = [list(lists)[at : at + share] for at in range(0, len(lists), share)]
    return "; ".join(f"{', '.join(group)} to {cpu}" for cpu, group in zip(chosen, groups, strict=False))


def _cpus(text: str) -> Iterator[int]:
    """Yield the CPUs in a list as the kernel writes it: ``0-3,8``."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _lists(ctx: PlanContext, nic: Nic) -> dict[str, str]:
    """Return the CPUs of each of the card's interrupts, as they are now."""
    paths = {number: AFFINITIES.replace("*", number) for number in nic.irq_affinity.or_else({})}
    return {number: cpus for number, path in paths.items() if (cpus := ctx.value(path)) is not None}


def _is_in_use(ctx: PlanContext) -> bool:
    found = [(nic, queues) for nic in nics(ctx) if (queues := nic.rx_queues.or_else(0)) > 1]
    return bool(found) and all(_are_gathered(_lists(ctx, nic), queues) for nic, queues in found)


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
