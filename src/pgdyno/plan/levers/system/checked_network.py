"""Checks of the network: interrupts, buffers, dead connections."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from pgdyno.base import numbers
from pgdyno.host.cpu_list import parse_cpu_list
from pgdyno.host.host import Nic
from pgdyno.plan.levers._contract import Check, Layer, Lever, Maturity, Need, PlanContext, Risk, sysctl_path
from pgdyno.plan.levers.system._network import nics, nothing_to_gain

WAITS = {name: sysctl_path(f"net.core.{name}") for name in ("busy_read", "busy_poll")}
OFF = "0"

CARD = "/sys/class/net/*"
EMPTY_POLLS, WAITS_NS = "/napi_defer_hard_irqs", "/gro_flush_timeout"
SHOWN_POLLS, SHOWN_NS = 10, 20_000  # as the kernel's commit shows them
NS_PER_US = 1000

AFFINITIES = "/proc/irq/*/smp_affinity_list"
QUEUES_PER_CPU = 4  # arbitrary: the fewest that no CPU is saturated by are found by trying

SENT, RECEIVED = sysctl_path("net.ipv4.tcp_wmem"), sysctl_path("net.ipv4.tcp_rmem")
FAR_AWAY_MS = 100  # a round trip between continents

IDLE = sysctl_path("net.ipv4.tcp_keepalive_time")
INTERVAL = sysctl_path("net.ipv4.tcp_keepalive_intvl")
PROBES = sysctl_path("net.ipv4.tcp_keepalive_probes")
OWN = "tcp_keepalives_idle"
LONG_S = 600  # arbitrary: who holds a lock for longer is missed by somebody


def _over_a_network(found: Callable[[PlanContext], str]) -> Callable[[PlanContext], str]:
    """Return a check that says so where no client comes over a network."""
    return lambda ctx: nothing_to_gain(ctx) or found(ctx)


def _busy_poll(ctx: PlanContext) -> str:
    have = ", ".join(f"net.core.{name} = {ctx.value(path)}" for name, path in WAITS.items())
    clients = f"up to {ctx.settings.text('max_connections')} clients and {ctx.cpu_count:g} CPUs"
    if _is_polling(ctx):
        return f"on ({have}): with {clients} it takes CPUs from busy backends"
    return f"left off ({have}): with {clients} it would take CPUs from busy backends"


def _is_polling(ctx: PlanContext) -> bool:
    return any(ctx.value(path) not in (None, OFF) for path in WAITS.values())


def _interrupt_coalescing(ctx: PlanContext) -> str:
    return "; ".join(_coalescing(ctx, nic) for nic in nics(ctx))


def _coalescing(ctx: PlanContext, nic: Nic) -> str:
    own = f"ethtool -c {nic.name} shows what the card itself waits for"
    if _waits(ctx, nic):
        waits_us = _number(ctx, nic, WAITS_NS) / NS_PER_US
        return (
            f"{nic.name} interrupts again after {_number(ctx, nic, EMPTY_POLLS)} looks without a packet, "
            f"{waits_us:g} µs apart; {own}"
        )
    directory = CARD.replace("*", nic.name)
    return (
        f"{nic.name} interrupts as soon as all packets are taken in; {own}. For less CPU time and longer "
        f"answers, in a variant: {directory}{EMPTY_POLLS}={SHOWN_POLLS},{directory}{WAITS_NS}={SHOWN_NS}. "
        f"For short answers: ethtool -C {nic.name} adaptive-rx off"
    )


def _waits(ctx: PlanContext, nic: Nic) -> bool:
    """Whether the kernel waits: it takes both."""
    return _number(ctx, nic, EMPTY_POLLS) > 0 and _number(ctx, nic, WAITS_NS) > 0


def _number(ctx: PlanContext, nic: Nic, name: str) -> int:
    return int(ctx.value(CARD.replace("*", nic.name) + name) or 0)


def _irq_affinity(ctx: PlanContext) -> str:
    return "; ".join(_interrupts(ctx, nic) for nic in nics(ctx))


def _interrupts(ctx: PlanContext, nic: Nic) -> str:
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
    cpus = sorted({cpu for text in lists.values() for cpu in parse_cpu_list(text) or ()})
    chosen = cpus[: math.ceil(queues / QUEUES_PER_CPU)]
    share = math.ceil(len(lists) / len(chosen))
    groups = [list(lists)[at : at + share] for at in range(0, len(lists), share)]
    return "; ".join(f"{', '.join(group)} to {cpu}" for cpu, group in zip(chosen, groups, strict=False))


def _lists(ctx: PlanContext, nic: Nic) -> dict[str, str]:
    """Return the CPUs of each of the card's interrupts, as they are now."""
    paths = {number: AFFINITIES.replace("*", number) for number in nic.irq_affinity.or_else({})}
    return {number: cpus for number, path in paths.items() if (cpus := ctx.value(path)) is not None}


def _are_all_gathered(ctx: PlanContext) -> bool:
    found = [(nic, queues) for nic in nics(ctx) if (queues := nic.rx_queues.or_else(0)) > 1]
    return bool(found) and all(_are_gathered(_lists(ctx, nic), queues) for nic, queues in found)


def _tcp_buffers(ctx: PlanContext) -> str:
    sent_bytes, received_bytes = _largest_bytes(ctx, SENT), _largest_bytes(ctx, RECEIVED)
    rate = numbers.size(sent_bytes * 1000 // FAR_AWAY_MS)
    return (
        f"buffers grow by themselves, to {numbers.size(sent_bytes)} for sending and "
        f"{numbers.size(received_bytes)} for receiving: a client {FAR_AWAY_MS} ms away gets up to {rate} "
        "per second. Only if that is too little, raise the third figure of net.ipv4.tcp_wmem here, and of "
        "tcp_rmem on the client's side"
    )


def _largest_bytes(ctx: PlanContext, path: str) -> int:
    """Return the last of a file's three figures: least, first, largest."""
    figures = (ctx.value(path) or "").split()
    return int(figures[-1]) if figures else 0


def _tcp_keepalive(ctx: PlanContext) -> str:
    if _is_servers_own(ctx):
        return f"the server has times of its own: {OWN} = {ctx.settings.text(OWN)} s"
    noticed_s = _noticed_s(ctx)
    told = f"a vanished client is noticed after {noticed_s // 60} minutes"
    if noticed_s <= LONG_S:
        return told
    return (
        f"{told}, and keeps its locks until then; {OWN} = 60, tcp_keepalives_interval = 10 and "
        "tcp_keepalives_count = 6 make it 2 minutes, for this server alone"
    )


def _noticed_s(ctx: PlanContext) -> int:
    idle, interval, probes = (int(ctx.value(path) or 0) for path in (IDLE, INTERVAL, PROBES))
    return idle + interval * probes


def _is_servers_own(ctx: PlanContext) -> bool:
    return ctx.settings.has(OWN) and ctx.settings.guc(OWN).source != "default"


CHECKS = (
    Check(
        Lever(
            name="busy_poll",
            title="waiting for packets awake",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            maturity=Maturity.PREVIEW,
            reads=tuple(WAITS.values()),
            needs=(Need.CPUS,),
            order_after={"max_connections": "more clients than CPUs cannot all wait awake"},
            touches_wakeups=True,
        ),
        _over_a_network(_busy_poll),
        _is_polling,
        "off, unless CPUs idle and microseconds of each round trip count: every waiting backend keeps a CPU "
        "busy, and the values are the whole machine's. No figure of our own yet.",
        (
            "https://docs.kernel.org/admin-guide/sysctl/net.html",
            "https://docs.kernel.org/networking/napi.html",
        ),
    ),
    Check(
        Lever(
            name="interrupt_coalescing",
            title="packets announced together",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            maturity=Maturity.PREVIEW,
            reads=(CARD + EMPTY_POLLS, CARD + WAITS_NS),
            is_instant=True,
        ),
        _over_a_network(_interrupt_coalescing),
        lambda ctx: any(_waits(ctx, nic) for nic in nics(ctx)),
        "fewer interrupts where many clients keep all CPUs busy; short waits where few clients wait for "
        "each answer, which they otherwise get later. The kernel's author of the two files saw 20 % of "
        "throughput lost to interrupts with 32 queues and more at 100 Gbit/s. No figure of our own yet.",
        (
            "https://docs.kernel.org/networking/napi.html",
            "https://git.kernel.org/torvalds/c/6f8b12d661d0",
            "https://github.com/aws/aws-graviton-getting-started/tree/main/perfrunbook",
            "https://man7.org/linux/man-pages/man8/ethtool.8.html",
        ),
    ),
    Check(
        Lever(
            name="irq_affinity",
            title="interrupts of a network card on few CPUs",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            maturity=Maturity.PREVIEW,
            reads=(AFFINITIES,),
        ),
        _over_a_network(_irq_affinity),
        _are_all_gathered,
        "interrupts on the fewest CPUs that they do not saturate (mpstat -P ALL: softirq), so that backends "
        "on the others are not interrupted while they hold a lock. irqbalance writes them anew every ten "
        "seconds. No figure of our own yet.",
        (
            "https://docs.kernel.org/networking/scaling.html#rss-receive-side-scaling",
            "https://docs.kernel.org/core-api/irq/irq-affinity.html",
            "https://github.com/aws/aws-graviton-getting-started/tree/main/perfrunbook",
        ),
    ),
    Check(
        Lever(
            name="tcp_buffers",
            title="answers on their way to clients far away",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            maturity=Maturity.PREVIEW,
            reads=(SENT, RECEIVED),
        ),
        _over_a_network(_tcp_buffers),
        lambda _: False,  # the kernel grows buffers everywhere, and to what size is its own choice
        "a largest size that is the line's rate times the round trip, for large results, COPY and standbys "
        "far away. Short answers gain nothing; larger buffers take memory for each connection.",
        (
            "https://man7.org/linux/man-pages/man7/tcp.7.html",
            "https://docs.kernel.org/networking/ip-sysctl.html",
        ),
    ),
    Check(
        Lever(
            name="tcp_keepalive",
            title="vanished clients noticed",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            maturity=Maturity.PREVIEW,
            reads=(IDLE, INTERVAL, PROBES),
        ),
        _over_a_network(_tcp_keepalive),
        lambda ctx: _is_servers_own(ctx) or _noticed_s(ctx) <= LONG_S,
        "ten minutes or less, so that a client that vanished gives back its locks, its snapshot and its "
        "connection. Short times close connections over networks that fail for a while. No gain in "
        "throughput.",
        (
            (
                "https://www.postgresql.org/docs/current/runtime-config-connection.html"
                "#GUC-TCP-KEEPALIVES-IDLE"
            ),
            "https://man7.org/linux/man-pages/man7/tcp.7.html",
        ),
    ),
)
